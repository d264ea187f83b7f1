"""The checks of `accord doctor`; each reports what it found and how to fix it."""

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
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from accord.cli.connection import DEFAULT_URL
from accord.cli.data_dir_lock import LOCK_FILE as LOCK
from accord.cli.doctor import certificates, data_directory
from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult
from accord.cli.doctor.config import check_config, listen_url
from accord.cli.doctor.data_directory import CLOCK_SKEW_S
from accord.cli.hosts.checks import check_connections
from accord.cli.server_url import DEFAULT_PORT, check_url, connectable_url, serve_command
from accord.client.connection.tls_errors import explain_tls_error
from accord.client.errors import ClientError, Unreachable
from accord.client.http_client import PROBE_TIMEOUT_S, HttpClient, is_listening
from accord.client.identity import decode_claims, parse_address
from accord.core.kernel.refusal import Refused
from accord.settings.client import Settings, SettingsError, is_local, port_of
from accord.settings.profiles import Profile, ProfileError
from accord.settings.server import ServerConfig, load_config
from accord.show.text import MAX_SPAN_S, escape_controls, format_duration

TOKEN_EXPIRY_WARNING_S = 15 * 60


def run_checks(
    data_dir: Path | None, url: str | None, file: str | None = None
) -> Iterator[CheckResult]:
    """All checks, each after those it depends on."""
    yield check_python()
    yield check_git()
    try:
        known = Settings.for_client(url=url, home=data_dir)
    except SettingsError as error:
        yield CheckResult(
            FAIL, "settings", escape_controls(str(error)), "Correct or remove that file."
        )
        return
    except ProfileError as error:
        yield CheckResult(FAIL, "profile", escape_controls(str(error)), "Do that, or log in again.")
        return
    chosen = load_config({"config": file}, os.environ, known.home)
    yield from check_config(chosen, os.environ)
    yield from data_directory.check_data(known.home, chosen.config.store)
    if not known.url:
        known = Settings.for_process(
            url=running_url(known.home) or configured_url(chosen.config), home=data_dir
        )
    yield from check_server(known, serve_flags(data_dir, file))
    yield from check_connections()


def configured_url(config: ServerConfig) -> str:
    """The address at which a server with this configuration would listen."""
    return connectable_url(
        listen_url(config.host, config.port or DEFAULT_PORT, tls=config.tls is not None)
    )


def running_url(home: Path) -> str | None:
    """The address of the server that is using this directory, from its lock file.

    A killed server leaves its lock file behind, so a connection is tried too.
    """
    try:
        noted = (home / LOCK).read_text("utf-8", "replace").strip()
    except OSError:
        return None
    url = connectable_url(noted)
    return url if noted.startswith("http") and is_listening(url) else None


def serve_flags(data_dir: Path | None, file: str | None) -> str:
    """Flags that make `accord serve` start the server that was checked."""
    flags = {"--data-dir": data_dir, "--config": file}
    return "".join(f" {flag} {shlex.quote(str(at))}" for flag, at in flags.items() if at)


def check_python() -> CheckResult:
    """Report the version; one that is too old could not have started this program."""
    return CheckResult(OK, "Python", f"{platform.python_version()} ({sys.executable})")


def check_git() -> CheckResult:
    if not (program := shutil.which("git")):
        return CheckResult(
            WARN, "git", "not found", "Install git: agents work in git repositories."
        )
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return CheckResult(OK, "git", version.stdout.removeprefix("git version ").strip() or program)


def check_server(known: Settings, flags: str = "") -> Iterator[CheckResult]:
    """The server answers, is Accord, has the same time, and accepts the token."""
    url = known.url or DEFAULT_URL
    try:
        address = parse_address(check_url(url))
    except Refused:
        cure = f"export ACCORD_URL={DEFAULT_URL}"
        yield CheckResult(FAIL, "server", f"{escape_controls(url)} is not a server address", cure)
        return
    url = address.base_url
    healthy, date = False, ""
    try:
        response = HttpClient(address, timeout_s=PROBE_TIMEOUT_S).send("GET", ("healthz",))
        healthy = response.status == HTTPStatus.OK and response.body.strip() == b"ok"
        date = response.headers.get("date", "")
    except Unreachable as error:
        if isinstance(error.__cause__, OSError):
            yield explain_unreachable(error, url, flags)
            yield from check_token(known, asked=False)
            return
    if not healthy:
        cure = "Use another port: accord serve --port 7421, and set ACCORD_URL accordingly."
        yield CheckResult(FAIL, "server", f"the server at {url} is not Accord", cure)
        return
    yield CheckResult(OK, "server", f"answers at {url}")
    yield from check_same_directory(known, url)
    yield from certificates.check_served(url)
    yield from check_clock_skew(date)
    yield from check_token(known, asked=True)


def is_own_server(known: Settings, url: str) -> bool:
    """Whether the server that answers uses this data directory, by its lock file."""
    running = running_url(known.home)
    return running is not None and is_local(url) and port_of(running) == port_of(url)


def check_same_directory(known: Settings, url: str) -> Iterator[CheckResult]:
    """The server that answers may be another one than that of the data directory."""
    if not is_own_server(known, url):
        yield CheckResult(
            WARN,
            "data",
            f"the server at {url} does not use {known.home}; the checks above apply only "
            "to that directory",
            "Name the server's own directory: accord doctor --data-dir DIR",
        )


def explain_unreachable(error: Unreachable, url: str, flags: str) -> CheckResult:
    """The certificate is refused, or no server answers."""
    if explanation := explain_tls_error(error, url):
        cure = certificates.certificate_advice(error)
        return CheckResult(FAIL, "server", escape_controls(explanation), cure)
    return check_port(url, flags)


def check_port(url: str, flags: str = "") -> CheckResult:
    """No server answers; on this machine, check that the port is free."""
    parts, port = urlsplit(url), port_of(url)
    if not is_local(url):
        cure = "Check the address, the network, and that the server is running."
        return CheckResult(FAIL, "server", f"{url} does not answer", cure)
    family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((parts.hostname or "127.0.0.1", port))
        except OSError as error:
            cure = f"See which program uses it: ss -ltnp 'sport = :{port}'"
            return CheckResult(
                FAIL, "server", f"port {port} cannot be used: {error.strerror}", cure
            )
    return CheckResult(
        WARN, "server", f"not running; port {port} is free", serve_command(url) + flags
    )


def check_clock_skew(date: str) -> Iterator[CheckResult]:
    """Compare the server's clock with this machine's."""
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return
    apart = abs(theirs - time.time())
    if apart > CLOCK_SKEW_S:
        said = f"{format_duration(apart)} off the server's; tokens tolerate {CLOCK_SKEW_S} s"
        yield CheckResult(FAIL, "clock", said, "Synchronise the clocks of both machines with NTP.")


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims of a token; only the server can verify them."""

    agent_id: str
    exp: int
    kind: str = ""


def token_advice(known: Settings, *, asked: bool) -> str:
    """How to sign in; an invitation of another directory would be refused."""
    if not asked:
        return "`accord serve` prints a link; then: accord login LINK"
    if not is_own_server(known, known.url or DEFAULT_URL):
        return "Ask an operator of that server for a link, then: accord login LINK"
    here = f"--data-dir {shlex.quote(str(known.home))}"
    first = "unset ACCORD_TOKEN; " if known.token else ""
    return f'{first}accord login "$(accord invite --role admin --name YOU {here})"'


def check_token(known: Settings, *, asked: bool) -> Iterator[CheckResult]:
    """A token is set, is Accord's, has not expired, and the server accepts it."""
    renew = token_advice(known, asked=asked)
    if known.profile is not None:
        yield check_profile(known.profile)
        return
    if not known.token:
        yield CheckResult(WARN, "token", "ACCORD_TOKEN is not set and you are not logged in", renew)
        return
    claims = decode_claims(known.token, TokenClaims)
    if claims is None:
        yield CheckResult(FAIL, "token", "ACCORD_TOKEN does not hold an Accord token", renew)
        return
    left = float(min(claims.exp, MAX_SPAN_S)) - time.time()
    who = f"{escape_controls(claims.agent_id)}, {escape_controls(claims.kind)}"
    if left <= 0:
        grace = f" (clocks may differ by {CLOCK_SKEW_S} s)" if -left < CLOCK_SKEW_S else ""
        yield CheckResult(
            FAIL, "token", f"{who}: expired {format_duration(-left)} ago{grace}", renew
        )
    elif asked and (refusal := token_refusal(known)):
        yield CheckResult(FAIL, "token", f"{who}: {refusal}", renew)
    else:
        state, cure = (WARN, renew) if left < TOKEN_EXPIRY_WARNING_S else (OK, "")
        yield CheckResult(state, "token", f"{who}, valid for {format_duration(left)} more", cure)


def check_profile(profile: Profile) -> CheckResult:
    """The device of `accord login` is signed in; its token is renewed if it is due."""
    from accord.client.sign_in.profile_token import ProfileToken

    who = escape_controls(f"{profile.id} at {profile.url} (profile {profile.name})")
    try:
        ProfileToken(profile)()
    except Unreachable as error:
        return CheckResult(WARN, "login", f"{who}: {escape_controls(str(error))}", "")
    except (ClientError, ProfileError) as error:
        cure = "Ask for a new link and run: accord login LINK"
        return CheckResult(FAIL, "login", f"{who}: {escape_controls(str(error))}", cure)
    return CheckResult(OK, "login", who)


def token_refusal(known: Settings) -> str:
    """Why the server does not accept the token; empty if it does."""
    http = HttpClient(parse_address(known.url or DEFAULT_URL), known.token, PROBE_TIMEOUT_S)
    try:
        status = http.send("GET", ("sessions",), {"limit": 1}).status
    except Unreachable:
        return ""
    refused = status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
    return "the server does not accept it" if refused else ""
