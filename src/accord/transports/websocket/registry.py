"""All WebSocket connections of a server, and the handshake that admits them."""

from typing import Any
from urllib.parse import parse_qs

from picows import WSUpgradeRequest, WSUpgradeResponse, WSUpgradeResponseWithListener

from accord.core.kernel.refusal import Reason, Refused
from accord.identity.token_signing import bearer_token
from accord.transports.edge.connection_limits import ConnectionLimits, PrincipalConnections
from accord.transports.edge.origin import check_origin
from accord.transports.http.people.sign_in_cookie import cookie_token, ensure_own_origin
from accord.transports.http.responses import refusal_response
from accord.transports.intake import Intake
from accord.transports.websocket.connection import Connection

SUBPROTOCOL = "pvp.v1"
WEBSOCKET_PATHS = frozenset({"/", "/ws"})


class WebSocketRegistry:
    """Accepts upgrades and tracks open connections."""

    def __init__(
        self,
        intake: Intake,
        connection_limits: ConnectionLimits | None = None,
        *,
        is_tls: bool = False,
    ) -> None:
        self.intake = intake
        self.is_tls = is_tls
        self.connection_limits = connection_limits or ConnectionLimits()
        self.connections: set[Connection] = set()
        self.principal_connections: PrincipalConnections[Connection] = PrincipalConnections(
            intake.limits.connections_per_principal
        )
        self.connection_count = 0

    def accept_upgrade(self, request: WSUpgradeRequest) -> Any:
        """A connection for an upgrade request, or the HTTP response that refuses it."""
        path, _, query = request.path.decode("latin-1").partition("?")
        protocols = upgrade_header_values(request, "Sec-WebSocket-Protocol")
        offered = [p.strip() for h in protocols for p in h.split(",")]
        try:
            hosts, origins = (
                upgrade_header_values(request, "Host"),
                upgrade_header_values(request, "Origin"),
            )
            check_origin(hosts, origins, loopback_only=self.intake.is_open)
            ensure_websocket_path(path)
            token = bearer_token(upgrade_header_values(request, "Authorization"), offered)
            token = token or self._cookie_token(request, origins)
            identity = self.intake.identify(token) if token else None
            if identity is not None:
                self.principal_connections.ensure_capacity(identity.actor)
        except Refused as refusal:
            return upgrade_refusal(refusal)
        connection = Connection(self, identity, self.runtime_of(query))
        subprotocol = {"Sec-WebSocket-Protocol": SUBPROTOCOL} if SUBPROTOCOL in offered else {}
        response = WSUpgradeResponse.create_101_response(subprotocol)
        return WSUpgradeResponseWithListener(response, connection)

    def _cookie_token(self, request: WSUpgradeRequest, origins: list[str]) -> str | None:
        """The token in the sign-in cookie, if the upgrade comes from our own page."""
        cookies = upgrade_header_values(request, "Cookie")
        token = cookie_token(cookies, self.intake.auth.server_id()) if cookies else None
        if token is not None:
            ensure_own_origin(origins, tls=self.is_tls)
        return token

    def runtime_of(self, query: str) -> str:
        """The runtime a client names; without a name, every connection is its own runtime."""
        named = parse_qs(query).get("runtime", [""])[0][:128]
        self.connection_count += 1
        return f"named:{named}" if named else f"connection:{self.connection_count}"

    def close_revoked(self, jti: str) -> None:
        """Close all connections that use a revoked token."""
        for connection in list(self.connections):
            identity = connection.identity
            if identity is not None and identity.claims.jti == jti:
                connection.close("the token was revoked")

    def close_all(self) -> None:
        """Close all connections because the server stops; clients reconnect by themselves."""
        for connection in list(self.connections):
            connection.close_for_shutdown()


def upgrade_header_values(request: WSUpgradeRequest, name: str) -> list[str]:
    """All values of a header."""
    values: list[str] = request.headers.getall(name, [])
    return values


def ensure_websocket_path(path: str) -> None:
    if path not in WEBSOCKET_PATHS:
        raise Refused(Reason.NO_ROUTE, "Connect to /ws for PVP")


def upgrade_refusal(refusal: Refused) -> WSUpgradeResponseWithListener:
    """A refused upgrade, rendered like every other refusal."""
    rendered = refusal_response(refusal)
    del rendered.headers["content-length"]  # picows adds its own
    response = WSUpgradeResponse.create_error_response(
        rendered.status_code, bytes(rendered.body), rendered.headers
    )
    return WSUpgradeResponseWithListener(response, None)
