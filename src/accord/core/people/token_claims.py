"""The claims of a token, as signed into it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from accord.core.kernel.role_permissions import Capabilities, Kind, Roles

DEFAULT_TOKEN_LIFE_S = 12 * 3600

Seconds = Annotated[int, Meta(ge=0, le=2**40)]


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The seven claims of MSG 1.1, and Accord's own: kind, roles, capabilities, labels, name."""

    iss: Literal["accord"]
    agent_id: str
    workspace_id: str
    role: str
    session_id: str
    iat: Seconds
    exp: Seconds
    jti: str
    kind: Kind
    roles: Roles
    capabilities: Capabilities = frozenset()
    labels: frozenset[str] = frozenset()
    name: str = ""
