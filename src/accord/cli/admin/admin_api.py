"""Manages tokens and keys on the server if it answers, otherwise in the local store."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import msgspec

from accord.api.tokens import (
    IssuedToken,
    KeyList,
    ListedToken,
    PublicKey,
    TokenList,
    TokenRequest,
)
from accord.cli.admin.people_api import RemotePeopleAdmin
from accord.cli.connection import token_of
from accord.cli.server_url import check_url, not_answering
from accord.client.errors import ServerRefused, Unreachable
from accord.client.http_client import HttpClient, is_listening
from accord.client.identity import Token, parse_address
from accord.core.dialects.error_codes import reason_of
from accord.core.kernel.refusal import Reason, Refused
from accord.data_dir import DATABASE_NAME, store_url_of
from accord.identity.token_service import TokenAdmin, TokenService
from accord.settings.client import Settings, is_local

OPERATOR_REQUIRED = (
    "needs an operator: log in with `accord login LINK`, or run this on the server's machine "
    "with --data-dir DIR"
)


TOKENS = ("admin", "tokens")
KEYS = ("admin", "keys")
Answer = TypeVar("Answer")


class RemoteAdmin:
    """Token administration over HTTP, with the rights of the operator's token."""

    def __init__(self, url: str, token: Token | None) -> None:
        self._http = HttpClient(parse_address(url), token)
        self._token = token

    @property
    def people(self) -> RemotePeopleAdmin:
        """People, their devices and invitations."""
        return RemotePeopleAdmin(self)

    async def read(
        self, kind: type[Answer], path: tuple[str, ...], body: bytes | None = None
    ) -> Answer:
        """The decoded response; with a body it is a POST."""
        method = "GET" if body is None else "POST"
        with self._refusals():
            return await self._http.read(kind, path, method=method, body=body)

    async def delete(self, path: tuple[str, ...], query: Mapping[str, str]) -> bytes:
        """Delete this; returns the body of the response."""
        with self._refusals():
            return await self._http.request(path, query, method="DELETE")

    async def issue(self, request: TokenRequest) -> IssuedToken:
        """Let the server sign a new token."""
        with self._refusals():
            return await self._http.read(
                IssuedToken, TOKENS, method="POST", body=msgspec.json.encode(request)
            )

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Revoke a token permanently; an id that the server does not know needs `force`."""
        query = {"reason": reason} | ({"force": "true"} if force else {})
        with self._refusals():
            await self._http.request((*TOKENS, jti), query, method="DELETE")

    async def tokens(self) -> Sequence[ListedToken]:
        """The unexpired tokens that the operator may see."""
        with self._refusals():
            return (await self._http.read(TokenList, TOKENS)).tokens

    async def keys(self) -> Sequence[PublicKey]:
        """The public keys, oldest first."""
        with self._refusals():
            return (await self._http.read(KeyList, KEYS)).keys

    async def rotate(self) -> PublicKey:
        """Make a new signing key and return its public half."""
        with self._refusals():
            return await self._http.read(PublicKey, KEYS, method="POST")

    async def attest(self, repo: str, sha: str) -> str:
        """A statement about a commit, signed by the server."""
        path = ("admin", "repos", repo, "commits", sha, "statement")
        with self._refusals():
            return (await self._http.request(path)).decode()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise Refused for what the client raises, as the local store does."""
        try:
            yield
        except ServerRefused as error:
            if error.status == HTTPStatus.UNAUTHORIZED and not self._token:
                where = self._http.address.base_url
                raise Refused(Reason.UNAUTHENTICATED, f"{where} {OPERATOR_REQUIRED}") from None
            raise Refused(reason_of(error.code, error.status), error.message) from None
        except Unreachable as error:
            raise Refused(Reason.UNAVAILABLE, str(error)) from None


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --url, --data-dir and --json."""
    parser.add_argument("--url", help="the server (default: ACCORD_URL, or your profile)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="use the store in DIR instead of a server"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_admin(
    args: argparse.Namespace,
    work: Callable[[TokenAdmin], Awaitable[None]],
    *,
    elsewhere: bool = True,
    makes: bool = True,
) -> int:
    """Run `work` against the server or the local store.

    `elsewhere`: fall back to the local store if the configured server does not answer; `makes`:
    create the store if there is none.
    """
    asyncio.run(_run_admin(args, work, elsewhere=elsewhere, makes=makes))
    return 0


async def _run_admin(
    args: argparse.Namespace, work: Callable[[TokenAdmin], Awaitable[None]], **how: bool
) -> None:
    async with open_admin(args.url, args.data_dir, **how) as admin:
        await work(admin)


@asynccontextmanager
async def open_admin(
    url: str | None, data_dir: Path | None, *, elsewhere: bool = True, makes: bool = True
) -> AsyncIterator[TokenAdmin]:
    """The server or the store to manage; --url and --data-dir allow no fallback."""
    load = Settings.for_process if data_dir else Settings.for_client
    settings = load(url=url, home=data_dir)
    if settings.url and data_dir is None:
        server = check_url(settings.url)
        if await asyncio.to_thread(is_listening, server):
            yield RemoteAdmin(server, token_of(settings))
            return
        if url or not elsewhere or not is_local(settings.url):
            raise not_answering(settings.url)
        print(f"accord: {settings.url} does not answer; using {settings.home}", file=sys.stderr)
    if not makes:
        ensure_store(settings.home)
    async with local_admin(settings) as tokens:
        yield tokens.admin_for()


def ensure_store(home: Path) -> None:
    """Refuse if there is no store yet; opening reports every other problem."""
    from accord.operations.local_log import ensure_log_exists

    if not home.exists() or (home.is_dir() and not (home / DATABASE_NAME).exists()):
        ensure_log_exists(store_url_of(home))


def local_admin(settings: Settings) -> AbstractAsyncContextManager[TokenService]:
    """The token service of the local store."""
    from accord.server.engine_factory import open_local_token_service

    return open_local_token_service(settings.home)
