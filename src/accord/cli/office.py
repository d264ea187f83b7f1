"""Where tokens and keys are looked after: at the server if it answers, else on the store here."""

import argparse
import asyncio
import http.client
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from accord.cli.address import checked, silent
from accord.client.trouble import explained
from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.desk import Issued, Listed, LocalDesk, Office, PublicKey, Wish
from accord.home import DATABASE, place
from accord.settings import Settings, is_local

PATIENCE_S = 10.0
UNAUTHENTICATED = 401
WHO = (
    "wants to know who you are: put an operator's token into ACCORD_TOKEN, "
    "or on the server's own machine name its data with --data-dir DIR"
)

Answer = TypeVar("Answer")


class Tokens(msgspec.Struct, frozen=True):
    """What `GET /admin/tokens` answers."""

    tokens: tuple[Listed, ...]


class Keys(msgspec.Struct, frozen=True):
    """What `GET /admin/keys` answers."""

    keys: tuple[PublicKey, ...]


class Wrong(msgspec.Struct, frozen=True):
    """What went wrong, as the server says it."""

    code: str
    message: str


class Failed(msgspec.Struct, frozen=True):
    """The body of a refusal."""

    error: Wrong


class Remote:
    """An office behind HTTP; whose it is the server knows by the token."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = urlsplit(url)
        self._token = token

    def answers(self) -> bool:
        """Whether anything listens at the address."""
        try:
            port = self._url.port or (443 if self._secure else 80)
            socket.create_connection((self._url.hostname or "", port), PATIENCE_S).close()
        except (OSError, ValueError):
            return False
        return True

    async def issue(self, wish: Wish) -> Issued:
        """A new token, made by the server."""
        return await self._ask("POST", "/admin/tokens", Issued, msgspec.json.encode(wish))

    async def revoke(self, jti: str, reason: str = "", *, force: bool = False) -> None:
        """Make a token void, for good; one that nobody there knows of only with `force`."""
        query = urlencode({"reason": reason} | ({"force": "true"} if force else {}))
        path = f"/admin/tokens/{quote(jti, safe='')}?{query}"
        await asyncio.to_thread(self._send, "DELETE", path, None)

    async def tokens(self) -> Sequence[Listed]:
        """The tokens that have not expired, as far as the token's holder may see them."""
        return (await self._ask("GET", "/admin/tokens", Tokens)).tokens

    async def keys(self) -> Sequence[PublicKey]:
        """The keys that verify, oldest first."""
        return (await self._ask("GET", "/admin/keys", Keys)).keys

    async def rotate(self) -> PublicKey:
        """The key that signs from now on."""
        return await self._ask("POST", "/admin/keys", PublicKey)

    async def attest(self, repo: str, sha: str) -> str:
        """A signed statement, made by the server."""
        path = f"/admin/repos/{quote(repo, safe='')}/commits/{quote(sha, safe='')}/statement"
        return (await asyncio.to_thread(self._send, "GET", path, None)).decode()

    @property
    def _secure(self) -> bool:
        return self._url.scheme in {"https", "wss"}

    async def _ask(
        self, method: str, path: str, kind: type[Answer], body: bytes | None = None
    ) -> Answer:
        answer = await asyncio.to_thread(self._send, method, path, body)
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError:
            raise self._stranger() from None

    def _send(self, method: str, path: str, body: bytes | None) -> bytes:
        connect = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        server = connect(self._url.hostname or "", self._url.port, timeout=PATIENCE_S)
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            server.request(method, self._url.path.rstrip("/") + path, body, headers)
            answer = server.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as no:
            where = self._url.geturl()
            why = explained(no, where) or f"{where} broke off: {no}"
            raise Refused(Why.UNAVAILABLE, why) from None
        finally:
            server.close()
        if answer.status >= 300:
            raise self._refused(answer.status, content)
        return content

    def _refused(self, status: int, content: bytes) -> Refused:
        if status == UNAUTHENTICATED and not self._token:
            return Refused(Why.UNAUTHENTICATED, f"{self._url.geturl()} {WHO}")
        try:
            wrong = msgspec.json.decode(content, type=Failed).error
        except msgspec.DecodeError:
            return self._stranger()
        # What is refused before it is a request is refused in the words of PVP.
        same = (w for w, c in CODES.items() if c.http == status and wrong.code in {c.msg, c.pvp})
        return Refused(next(same, Why.INTERNAL), wrong.message)

    def _stranger(self) -> Refused:
        return Refused(Why.UNAVAILABLE, f"What answers at {self._url.geturl()} is no Accord server")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that say where to work."""
    parser.add_argument("--url", help="the server to ask (default: ACCORD_URL)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="work on the store in DIR, without a server"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(
    args: argparse.Namespace,
    work: Callable[[Office], Awaitable[None]],
    *,
    elsewhere: bool = True,
    makes: bool = True,
) -> int:
    """Do the work at the right place.

    `elsewhere`: the store here will do for a silent server; `makes`: one that is not there yet,
    too, and is made.
    """
    asyncio.run(_work(args, work, elsewhere=elsewhere, makes=makes))
    return 0


async def _work(
    args: argparse.Namespace, work: Callable[[Office], Awaitable[None]], **how: bool
) -> None:
    async with reach(args.url, args.data_dir, **how) as office:
        await work(office)


@asynccontextmanager
async def reach(
    url: str | None, data_dir: Path | None, *, elsewhere: bool = True, makes: bool = True
) -> AsyncIterator[Office]:
    """The office to go to; an address or a data directory that was named is meant."""
    settings = Settings.here(url=url, home=data_dir)
    if settings.url and data_dir is None:
        remote = Remote(checked(settings.url), settings.token)
        if await asyncio.to_thread(remote.answers):
            yield remote
            return
        if url or not elsewhere or not is_local(settings.url):
            raise silent(settings.url)
        print(f"accord: {settings.url} does not answer; using {settings.home}", file=sys.stderr)
    if not makes:
        ensure_made(settings.home)
    async with local(settings) as desk:
        yield desk.office()


def ensure_made(home: Path) -> None:
    """Refuse where nothing is yet; what is there and no log is for whoever opens it to tell."""
    from accord.reading import ensure_there

    if not home.exists() or (home.is_dir() and not (home / DATABASE).exists()):
        ensure_there(place(home))


def local(settings: Settings) -> AbstractAsyncContextManager[LocalDesk]:
    """The desk of this machine."""
    from accord.app import local_desk

    return local_desk(settings.home)
