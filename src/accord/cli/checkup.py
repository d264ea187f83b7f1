"""What `accord doctor` looks at. Each check says what it found, and how to mend it."""

import asyncio
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

import msgspec

from accord.cli import certified
from accord.cli.address import USUAL_PORT, port_of, serve
from accord.cli.configured import address, configured
from accord.cli.findings import FAIL, OK, WARN, Check
from accord.cli.where import DEFAULT_URL
from accord.client.identity import claims_of
from accord.client.trouble import explained
from accord.config import Config, choose
from accord.core.kernel.refusal import Refused
from accord.engine.ports import StoreError
from accord.home import KEYS, place
from accord.settings import Settings, SettingsError, is_local
from accord.show.text import count, safe, span

OTHERS = 0o077
PATIENCE_S = 5.0
LITTLE_SPACE = 256 << 20
OLDEST_NOW = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
SKEW_S = 60
SOON_S = 15 * 60
RECORDS = "(`accord verify` checks the records)"


def examine(data_dir: Path | None, url: str | None, file: str | None = None) -> Iterator[Check]:
    """Everything there is to look at, in the order in which things depend on each other."""
    yield python()
    yield git()
    try:
        known = Settings.here(url=url, home=data_dir)
    except SettingsError as no:
        yield Check(FAIL, "settings", safe(str(no)), "Correct or remove that file.")
        return
    chosen = choose({"config": file}, os.environ, known.home)
    yield from configured(chosen, os.environ)
    yield from folder(known.home)
    yield from keys(known.home / KEYS)
    yield store(known.home, chosen.config.store)
    yield clock()
    yield from server(known if known.url else Settings.here(url=own(chosen.config), home=data_dir))


def own(config: Config) -> str:
    """The address of the server that would start here."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - only compared with
    host = everywhere.get(config.host, config.host)
    return address(host, config.port or USUAL_PORT, tls=config.tls is not None)


def python() -> Check:
    """Which one; an older one than we need would not have come this far."""
    return Check(OK, "Python", f"{platform.python_version()} ({sys.executable})")


def git() -> Check:
    """There."""
    if not (found := shutil.which("git")):
        return Check(WARN, "git", "not found", "Install git; agents work in its repositories.")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return Check(OK, "git", said.stdout.removeprefix("git version ").strip() or found)


def folder(home: Path) -> Iterator[Check]:
    """Ours alone, writable, and not full."""
    if not home.exists():
        yield unmade(home)
        return
    if not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield Check(FAIL, "data", f"{home} cannot be written", "Name another with --data-dir.")
        return
    if home.stat().st_mode & OTHERS:
        yield Check(WARN, "data", f"{home} is open to others", f"chmod 700 {home}")
    else:
        yield Check(OK, "data", str(home))
    free = shutil.disk_usage(home).free
    if free < LITTLE_SPACE:
        yield Check(WARN, "disk", f"{free >> 20} MiB free", f"Make room where {home} lies.")


def unmade(home: Path) -> Check:
    """Not there yet: what counts is whether it can be made."""
    above = next(each for each in home.absolute().parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Check(OK, "data", f"{home} (made when the server starts)")
    cure = "Name another with --data-dir or ACCORD_HOME."
    return Check(FAIL, "data", f"{home} cannot be made: {above} cannot be written", cure)


def keys(path: Path) -> Iterator[Check]:
    """Readable by nobody else."""
    if not path.is_dir():
        yield Check(OK, "keys", "none yet (made when the server starts)")
        return
    files = sorted([*path.glob("*.pem"), *path.glob("*.pub")])
    if exposed := [each for each in (path, *files) if each.stat().st_mode & OTHERS]:
        cure = " && ".join(f"chmod {700 if each.is_dir() else 600} {each}" for each in exposed)
        yield Check(FAIL, "keys", "others may reach the signing keys", cure)
    elif not any(each.suffix == ".pem" for each in files):
        yield Check(WARN, "keys", "none that can sign", "accord keys rotate")
    else:
        yield Check(OK, "keys", f"{count(len(list(path.glob('*.pub'))), 'key')}, for you alone")


def store(home: Path, named: str | None = None) -> Check:
    """Opens, is ours, and is whole."""
    url = place(home, named)
    scheme, _, path = url.partition(":")
    if scheme == "sqlite" and not Path(path).exists():
        return Check(OK, "store", "none yet (made when the server starts)")
    return asyncio.run(wholeness(url))


async def wholeness(url: str) -> Check:
    """What the store says of itself."""
    from accord.reading import opened
    from accord.verify import check_store

    cure = "accord restore --force FILE   (a backup; `accord verify` tells what still holds)"
    try:
        async with opened(url) as events:
            streams = len(await events.streams())
            if damage := await check_store(events):
                return Check(FAIL, "store", safe("; ".join(damage[:3])), cure)
    except (StoreError, Refused, OSError) as no:
        return Check(FAIL, "store", safe(str(no)), cure)
    return Check(OK, "store", f"file whole, {count(streams, 'stream')} {RECORDS}")


def clock() -> Check:
    """Not before this program was written."""
    now = time.time()
    if now < OLDEST_NOW:
        said = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}, which cannot be"
        return Check(FAIL, "clock", said, "Set the clock: tokens and gates end by it.")
    return Check(OK, "clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC")


def server(known: Settings) -> Iterator[Check]:
    """Answers, is ours, agrees on the time, and takes the token."""
    url = known.url or DEFAULT_URL
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        cure = f"export ACCORD_URL={DEFAULT_URL}"
        yield Check(FAIL, "server", f"{safe(url)} is no address", cure)
        return
    try:
        with opener(url).open(f"{url.rstrip('/')}/healthz", timeout=PATIENCE_S) as answer:
            healthy = answer.read(16).strip() == b"ok"
            date = answer.headers.get("date", "")
    except HTTPError:
        healthy, date = False, ""
    except (URLError, OSError) as no:
        why = explained(no, url)
        yield Check(FAIL, "server", safe(why), certified.remedy(no)) if why else silent(url)
        yield from token(known, asked=False)
        return
    if not healthy:
        cure = "Name another port: accord serve --port 7421, and set ACCORD_URL to it."
        yield Check(FAIL, "server", f"what answers at {url} is not Accord", cure)
        return
    yield Check(OK, "server", f"answers at {url}")
    yield from certified.shown(url)
    yield from agreed(date)
    yield from token(known, asked=True)


def opener(url: str) -> OpenerDirector:
    """Asks without a proxy on this machine."""
    return build_opener(*([ProxyHandler({})] if is_local(url) else []))


def silent(url: str) -> Check:
    """Nobody listens; on this machine the port must be free then."""
    parts, port = urlsplit(url), port_of(url)
    if not is_local(url):
        cure = "Check the address, the network, and that the server runs there."
        return Check(FAIL, "server", f"{url} does not answer", cure)
    family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((parts.hostname or "127.0.0.1", port))
        except OSError as no:
            cure = f"See who holds it: ss -ltnp 'sport = :{port}'"
            return Check(FAIL, "server", f"port {port} cannot be used: {no.strerror}", cure)
    return Check(WARN, "server", f"none runs; port {port} is free", serve(url))


def agreed(date: str) -> Iterator[Check]:
    """The server's clock and ours."""
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return
    apart = abs(theirs - time.time())
    if apart > SKEW_S:
        said = f"{span(apart)} apart from the server's; tokens allow for {SKEW_S} s"
        yield Check(FAIL, "clock", said, "Let both machines keep their clocks with NTP.")


class Claims(msgspec.Struct, frozen=True):
    """What a token says; only the server knows whether it is true."""

    agent_id: str
    exp: int
    kind: str = ""


def token(known: Settings, *, asked: bool) -> Iterator[Check]:
    """There, ours, not expired, and taken by the server."""
    here = f"--data-dir {shlex.quote(str(known.home))}"
    renew = f"export ACCORD_TOKEN=$(accord token issue {here} --id YOU --type human --roles driver)"
    if not known.token:
        yield Check(WARN, "token", "ACCORD_TOKEN is not set", renew)
        return
    claims = claims_of(known.token, Claims)
    if claims is None:
        yield Check(FAIL, "token", "ACCORD_TOKEN is no token of Accord", renew)
        return
    left = claims.exp - time.time()
    who = f"{safe(claims.agent_id)}, {safe(claims.kind)}"
    if left <= 0:
        grace = f" (clocks may differ by {SKEW_S} s)" if -left < SKEW_S else ""
        yield Check(FAIL, "token", f"{who}: expired {span(-left)} ago{grace}", renew)
    elif asked and (no := refused(known)):
        yield Check(FAIL, "token", f"{who}: {no}", renew)
    else:
        state, cure = (WARN, renew) if left < SOON_S else (OK, "")
        yield Check(state, "token", f"{who}, for {span(left)} more", cure)


def refused(known: Settings) -> str:
    """Why the server does not take the token; nothing where it does."""
    url = known.url or DEFAULT_URL
    headers = {"authorization": f"Bearer {known.token}"}
    request = Request(f"{url.rstrip('/')}/sessions", headers=headers)  # noqa: S310 - checked
    try:
        opener(url).open(request, timeout=PATIENCE_S).close()
    except HTTPError as no:
        with no:
            return "the server does not take it" if no.code in {401, 403} else ""
    except (URLError, OSError):
        return ""
    return ""
