"""TLS for hooks: as strict as the commands, and without reading every authority of the system.

A file with all authorities of the system takes 17 ms of CPU to read, a sixth of what a hook may
use. Most systems also have a directory in which OpenSSL finds the one authority that it needs, by
the hash of its name. That is tried first; it is a part of what the commands trust. A server that it
does not vouch for is asked again with everything the commands trust.
"""

from __future__ import annotations

import os
import ssl

from accord.git.bridge_client import seconds_left

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

FILE_VARIABLE, DIRECTORY_VARIABLE = "SSL_CERT_FILE", "SSL_CERT_DIR"
HASHED_SUFFIX = ".0"  # of the first authority with that hash

_contexts: dict[str, ssl.SSLContext] = {}


def open_tls(connect: Callable[[], socket.socket], host: str, deadline: float) -> ssl.SSLSocket:
    """A verified connection over one that `connect` opens; raises OSError."""
    if directory := _hashed_directory():
        try:
            return _wrap(connect(), host, directory, deadline)
        except ssl.SSLCertVerificationError:
            pass
    return _wrap(connect(), host, "", deadline)


def _wrap(plain: socket.socket, host: str, directory: str, deadline: float) -> ssl.SSLSocket:
    try:
        plain.settimeout(seconds_left(deadline))
        # As bytes, because a text would be encoded by IDNA, which takes long to import.
        name = host.encode() if host.isascii() else host
        return _context(directory).wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


def _context(directory: str) -> ssl.SSLContext:
    """One for all connections of a hook; without a directory, with all that Python trusts."""
    if directory not in _contexts:
        _contexts[directory] = ssl.create_default_context(capath=directory or None)
    return _contexts[directory]


def _hashed_directory() -> str:
    """The directory of authorities, unless a file alone is named in its place."""
    if os.environ.get(FILE_VARIABLE) and not os.environ.get(DIRECTORY_VARIABLE):
        return ""
    directory = ssl.get_default_verify_paths().capath or ""
    try:
        names = os.listdir(directory) if directory else []  # noqa: PTH208 - hooks have no `pathlib`
    except OSError:
        return ""
    return directory if any(name.endswith(HASHED_SUFFIX) for name in names) else ""
