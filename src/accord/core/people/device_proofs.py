"""What a device signs to get a token: the same bytes for the device and for the server."""

from typing import NamedTuple
from urllib.parse import urlsplit

PROOF_HEADER = "accord-sign-in-v1"


class ProofStatement(NamedTuple):
    """That this device asks this server for a token now; `nonce` makes it good once."""

    address: str
    device: str
    time: int  # milliseconds since 1970
    nonce: str

    def to_bytes(self) -> bytes:
        """The bytes that are signed; no field can contain a newline."""
        return "\n".join(
            (PROOF_HEADER, self.address, self.device, str(self.time), self.nonce)
        ).encode()


def host_of(address: str) -> str:
    """Host and port in a server's address, in lower case; empty if it is not an address."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in {"http", "https"} else ""
