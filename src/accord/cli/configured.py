"""What `accord doctor` says of the server's configuration."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from accord.cli import certified
from accord.cli.findings import FAIL, OK, WARN, Check
from accord.config import ALL, CONFIG, Chosen
from accord.config.descriptors import SPARE, Allowed, allowed
from accord.settings import is_local
from accord.show.text import safe

ABOUT = "settings"
WRITABLE_BY_OTHERS = 0o022
OURS = re.compile(r"ACCORD_[A-Z_]+")
# What else of that name is ours.
OTHERS = frozenset({CONFIG, "ACCORD_HOME", "ACCORD_URL", "ACCORD_TOKEN", "ACCORD_SESSION"})
CLOSE = 0.8
LIMIT = "limits.connections"


def configured(chosen: Chosen, env: Mapping[str, str]) -> Iterator[Check]:
    """What is wrong, what is unusual and who says so, and who else could say it."""
    for wrong in chosen.wrong:
        yield Check(FAIL, ABOUT, safe(wrong), "Correct it; the server does not start with it.")
    yield from slips(env)
    if chosen.file is not None:
        yield from held(chosen.file)
    host, port = chosen.config.host, chosen.config.port
    if chosen.config.auth == "open" and not is_local(address(host, port)):
        said = (
            f"auth is open ({origin(chosen, 'auth')}), but {safe(host)} is not this machine alone"
        )
        yield Check(FAIL, ABOUT, said, "Set auth to token, or host to 127.0.0.1.")
    if chosen.config.tls is not None:
        yield certified.named(*chosen.config.tls)
    yield from roomy(chosen.config.limits.connections, allowed())
    if not chosen.wrong:
        yield Check(OK, ABOUT, "; ".join(unusual(chosen)) or "all as usual")


def roomy(connections: int, files: Allowed) -> Iterator[Check]:
    """Whether a server that is started from here could have all its connections."""
    room = files.room(connections)
    enough = connections + SPARE
    cure = f"Raise it (LimitNOFILE={enough} in systemd, ulimit -Hn {enough})"
    if few := files.too_few:
        yield Check(FAIL, "files", few, f"{cure}.")
    elif room < connections:
        said = f"the system allows {files.most} open files: room for {room} of {connections}"
        cure = f"{cure}, or set {LIMIT} = {room}."
        yield Check(WARN, "files", f"{said} connections", cure)


def unusual(chosen: Chosen) -> Iterator[str]:
    """Each value that is not what is usual, with where it came from."""
    for setting in ALL:
        value = chosen.value(setting.key)
        if value != setting.usual:
            said = "off" if value is None else safe(str(value))
            yield f"{setting.key} is {said} ({origin(chosen, setting.key)})"


def origin(chosen: Chosen, key: str) -> str:
    """Who set it."""
    return safe(chosen.sources.get(key, "usual"))


def slips(env: Mapping[str, str]) -> Iterator[Check]:
    """Variables that look like ours and are not."""
    known = {each.variable for each in ALL} | OTHERS
    for name in sorted(env):
        if OURS.fullmatch(name) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=CLOSE)
            if near:
                yield Check(WARN, ABOUT, f"{name} means nothing", f"Did you mean {near[0]}?")


def held(file: Path) -> Iterator[Check]:
    """Whoever may write the file may open the server to everybody."""
    try:
        found = file.stat()
    except OSError:
        return  # that it cannot be read was said
    quoted = shlex.quote(str(file))
    if found.st_mode & WRITABLE_BY_OTHERS:
        yield Check(WARN, ABOUT, f"{file} can be written by others", f"chmod go-w {quoted}")
    if found.st_uid not in {0, os.getuid()}:
        yield Check(WARN, ABOUT, f"{file} belongs to somebody else", f"chown $USER {quoted}")


def address(host: str, port: int, *, tls: bool = False) -> str:
    """Where a server with this configuration is reached."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
