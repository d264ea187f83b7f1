"""A local package index: the pins of a checkout, and a newer release of everything.

A pinned package has the dependencies of the real one but no contents. Packages that the set-up
itself runs are real: the build packages are repacked from this environment, and `uv` starts the
one installed here. A newer release depends on a package that no lock names.
"""

import hashlib
import io
import re
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from packaging.markers import Marker
from packaging.utils import canonicalize_name

NEWER = "9999"
OUTSIDER = "outsider"
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[\w.!+]+)(?: ; (?P<marker>[^\\\n]+?))? \\$")


class Pin(NamedTuple):
    """One pinned package of a lock."""

    name: str
    version: str
    marker: str

    @property
    def holds(self) -> bool:
        """Whether the pin applies to this machine."""
        return not self.marker or Marker(self.marker).evaluate()


def pins(lock: Path) -> list[Pin]:
    """The pins of a lock, in order."""
    matches = map(PIN.match, lock.read_text("utf-8").splitlines())
    found = [
        Pin(match["name"], match["version"], match["marker"] or "") for match in matches if match
    ]
    assert found, f"{lock} pins nothing"
    return found


class Index:
    """The files of the index, and a record of what was requested."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.url = ""
        self.asked: set[str] = set()  # packages whose page was requested
        self.sent: set[str] = set()  # files that were downloaded

    def add(self, name: str, version: str, wheel: bytes) -> None:
        """Publish a release."""
        self.files[file_name(name, version)] = wheel

    def hash_of(self, pin: Pin) -> str:
        """The SHA-256 of a pinned file."""
        return hashlib.sha256(self.files[file_name(pin.name, pin.version)]).hexdigest()

    def response_body(self, path: str) -> bytes | None:
        """The page of a package, or a file; None if there is no such thing."""
        match path.strip("/").split("/"):
            case ["simple", name]:
                self.asked.add(name)
                begins = f"{name.replace('-', '_')}-"
                mine = [file for file in self.files if file.startswith(begins)]
                links = "".join(f'<a href="/files/{file}">{file}</a>\n' for file in mine)
                return (
                    f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode() if mine else None
                )
            case ["files", file]:
                self.sent.add(file)
                return self.files.get(file)
            case _:
                return None


@contextmanager
def run_index(locks: Iterable[Path], real: Iterable[Path]) -> Iterator[Index]:
    """Serve empty packages for what `locks` pin, and real ones for what `real` pins."""
    index = Index()
    genuine = {pin.name for lock in real for pin in pins(lock)}
    for pin in {pin for lock in locks for pin in pins(lock)}:
        if pin.name == "uv":
            wheel = uv_wrapper_wheel(pin.version)
        elif pin.name in genuine:
            wheel = repack_installed(pin.name)
        else:
            wheel = empty_wheel(pin.name, pin.version, requirements_of(pin.name))
        index.add(pin.name, pin.version, wheel)
        index.add(pin.name, NEWER, empty_wheel(pin.name, NEWER, [OUTSIDER]))
    index.add(OUTSIDER, "1", empty_wheel(OUTSIDER, "1", []))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_class(index))
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def relock(lock: Path, index: Index, without: frozenset[str] = frozenset()) -> None:
    """Rewrite a lock with the hashes of this index, without some packages."""
    lines = [
        f"{pin.name}=={pin.version}{f' ; {pin.marker}' * bool(pin.marker)} \\\n"
        f"    --hash=sha256:{index.hash_of(pin)}\n"
        for pin in pins(lock)
        if pin.name not in without
    ]
    lock.write_text("".join(lines), "utf-8")


def handler_class(index: Index) -> type[BaseHTTPRequestHandler]:
    """An HTTP request handler for one index."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = index.response_body(self.path)
            self.send_response(404 if body is None else 200)
            kind = "text/html" if "/simple/" in self.path else "application/octet-stream"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815 - the server looks for this name

        def log_message(self, *args: object) -> None:
            """Keep the test output free of requests."""

    return Handler


def file_name(name: str, version: str) -> str:
    """The file name of a wheel for every platform."""
    return f"{stem(name, version)}-py3-none-any.whl"


def stem(name: str, version: str) -> str:
    """Name and version, as wheels and metadata directories begin."""
    return f"{name.replace('-', '_')}-{version}"


def empty_wheel(name: str, version: str, requires: Iterable[str]) -> bytes:
    """A wheel with metadata only."""
    return wheel(name, version, requires, {})


def wheel(name: str, version: str, requires: Iterable[str], files: Mapping[str, bytes]) -> bytes:
    """A wheel with these files."""
    info = f"{stem(name, version)}.dist-info"
    extras = {found for each in requires for found in re.findall(r"extra == ['\"]([\w-]+)", each)}
    metadata = [
        *("Metadata-Version: 2.3", f"Name: {name}", f"Version: {version}"),
        *(f"Provides-Extra: {each}" for each in sorted(extras)),
        *(f"Requires-Dist: {each}" for each in requires),
    ]
    about = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    held = {
        **files,
        f"{info}/METADATA": ("\n".join(metadata) + "\n").encode(),
        f"{info}/WHEEL": about.encode(),
    }
    held[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*held, f"{info}/RECORD"]).encode()
    return zip_files(held)


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """A reproducible archive of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100755 << 16  # scripts must be executable
            archive.writestr(entry, content)
    return made.getvalue()


def requirements_of(name: str) -> list[str]:
    """The requirements of the real package, if it is installed here."""
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:  # a package for another platform
        return []


def repack_installed(name: str) -> bytes:
    """A wheel of a real package, from its installed files."""
    here = distribution(name)
    held = {
        str(file): Path(str(here.locate_file(file))).read_bytes()
        for file in here.files or []
        if ".." not in file.parts and file.suffix != ".pyc"
    }
    record = next(file for file in held if file.endswith(".dist-info/RECORD"))
    held[record] = "".join(f"{each},,\n" for each in held).encode()
    return zip_files(held)


def uv_wrapper_wheel(version: str) -> bytes:
    """A wheel whose `uv` starts the one of this environment."""
    script = f"#!python\nimport os, sys\nos.execv({uv_path()!r}, [{uv_path()!r}, *sys.argv[1:]])\n"
    return wheel("uv", version, [], {f"uv-{version}.data/scripts/uv": script.encode()})


def uv_path() -> str:
    """The `uv` of this environment."""
    found = shutil.which("uv", path=str(Path(sys.executable).parent))
    assert found, "this environment has no uv: make setup"
    return found


def versions_of(pinned: Iterable[Pin]) -> dict[str, str]:
    """Names and versions of the pins that apply to this machine."""
    return {str(canonicalize_name(pin.name)): pin.version for pin in pinned if pin.holds}
