"""What `accord doctor` looks at. Each check says what it found, and how to mend it."""

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
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

import msgspec

from accord.cli import certified, kept
from accord.cli.address import USUAL_PORT, port_of, reachable, serve
from accord.cli.configured import address, configured
from accord.cli.findings import FAIL, OK, WARN, Check
from accord.cli.kept import SKEW_S
from accord.cli.lock import FILE as LOCK
from accord.cli.where import DEFAULT_URL
from accord.client.identity import claims_of
from accord.client.trouble import explained
from accord.config import Config, choose
from accord.settings import Settings, SettingsError, is_local
from accord.show.text import safe, span

PATIENCE_S = 5.0
SOON_S = 15 * 60


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
    yield from kept.examine(known.home, chosen.config.store)
    if not known.url:
        known = Settings.here(url=running(known.home) or own(chosen.config), home=data_dir)
    yield from server(known, started(data_dir, file))


def own(config: Config) -> str:
    """The address of the server that would start here."""
    return reachable(address(config.host, config.port or USUAL_PORT, tls=config.tls is not None))


def running(home: Path) -> str | None:
    """The address of the server that uses this directory, whatever the settings say by now."""
    try:
        noted = (home / LOCK).read_text("utf-8", "replace").strip()
    except OSError:
        return None
    url = reachable(noted)
    return url if noted.startswith("http") and listens(url) else None


def listens(url: str) -> bool:
    """Whether somebody takes connections there; a server that was killed left its note behind."""
    try:
        with socket.create_connection((urlsplit(url).hostname, port_of(url)), PATIENCE_S):
            return True
    except (OSError, ValueError):
        return False


def started(data_dir: Path | None, file: str | None) -> str:
    """What belongs behind `accord serve` so that it is the server that was looked at."""
    said = {"--data-dir": data_dir, "--config": file}
    return "".join(f" {flag} {shlex.quote(str(at))}" for flag, at in said.items() if at)


def python() -> Check:
    """Which one; an older one than we need would not have come this far."""
    return Check(OK, "Python", f"{platform.python_version()} ({sys.executable})")


def git() -> Check:
    """There."""
    if not (found := shutil.which("git")):
        return Check(WARN, "git", "not found", "Install git; agents work in its repositories.")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return Check(OK, "git", said.stdout.removeprefix("git version ").strip() or found)


def server(known: Settings, flags: str = "") -> Iterator[Check]:
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
        yield Check(FAIL, "server", safe(why), certified.remedy(no)) if why else silent(url, flags)
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


def silent(url: str, flags: str = "") -> Check:
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
    return Check(WARN, "server", f"none runs; port {port} is free", serve(url) + flags)


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
