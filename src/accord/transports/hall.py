"""All connections of a server, and how one is let in."""

from typing import Any
from urllib.parse import parse_qs

from picows import WSUpgradeRequest, WSUpgradeResponse, WSUpgradeResponseWithListener

from accord.core.kernel.refusal import Refused, Why
from accord.transports.connection import Connection
from accord.transports.crowd import Crowd
from accord.transports.guard import check_origin
from accord.transports.identity import bearer
from accord.transports.porch import Porch
from accord.transports.reception import Reception
from accord.transports.replies import refusal

SUBPROTOCOL = "pvp.v1"
PATHS = frozenset({"/", "/ws"})


class Hall:
    """Where upgrades are granted, and whoever was let in is known."""

    def __init__(self, reception: Reception, porch: Porch | None = None) -> None:
        self.reception = reception
        self.porch = porch or Porch()
        self.connections: set[Connection] = set()
        self.crowd: Crowd[Connection] = Crowd(reception.limits.connections_per_principal)
        self.count = 0

    def admit(self, request: WSUpgradeRequest) -> Any:
        """A connection for an upgrade request, or the HTTP answer that refuses it."""
        path, _, query = request.path.decode("latin-1").partition("?")
        protocols = header(request, "Sec-WebSocket-Protocol")
        offered = [p.strip() for h in protocols for p in h.split(",")]
        try:
            hosts, origins = header(request, "Host"), header(request, "Origin")
            check_origin(hosts, origins, strict=self.reception.is_open)
            ensure_spoken(path)
            token = bearer(header(request, "Authorization"), offered)
            identity = self.reception.identify(token) if token else None
            if identity is not None:
                self.crowd.check(identity.actor)
        except Refused as no:
            return refused(no)
        connection = Connection(self, identity, self.runtime(query))
        chosen = {"Sec-WebSocket-Protocol": SUBPROTOCOL} if SUBPROTOCOL in offered else {}
        response = WSUpgradeResponse.create_101_response(chosen)
        return WSUpgradeResponseWithListener(response, connection)

    def runtime(self, query: str) -> str:
        """The runtime a client says it is; without one, each connection is its own."""
        named = parse_qs(query).get("runtime", [""])[0][:128]
        self.count += 1
        return f"named:{named}" if named else f"connection:{self.count}"

    def revoke(self, jti: str) -> None:
        """End whatever was opened with a revoked token."""
        for connection in list(self.connections):
            identity = connection.identity
            if identity is not None and identity.claims.jti == jti:
                connection.close("the token was revoked")

    def say_goodbye(self) -> None:
        """The server stops; clients come back by themselves."""
        for connection in list(self.connections):
            connection.say_goodbye()


def header(request: WSUpgradeRequest, name: str) -> list[str]:
    """All values of a header."""
    values: list[str] = request.headers.getall(name, [])
    return values


def ensure_spoken(path: str) -> None:
    """Elsewhere there is nobody to talk to."""
    if path not in PATHS:
        raise Refused(Why.NO_ROUTE, "PVP is spoken on /ws")


def refused(no: Refused) -> WSUpgradeResponseWithListener:
    """The answer to an upgrade that is not granted, as every other over HTTP."""
    said = refusal(no)
    del said.headers["content-length"]  # picows adds its own
    response = WSUpgradeResponse.create_error_response(
        said.status_code, bytes(said.body), said.headers
    )
    return WSUpgradeResponseWithListener(response, None)
