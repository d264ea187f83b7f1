"""Requests and responses about signed policies and standing grants."""

from typing import Annotated

import msgspec
from msgspec import Meta

from accord.api.responses import ResponseObject
from accord.core.people.state import Id, PolicyText


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy to sign: the exact text of the file, and its SHA-256 in hexadecimal."""

    repository: Id
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    text: PolicyText
    workspace: Annotated[str, Meta(max_length=128)] = ""  # empty: the caller's own


class SignedPolicyText(ResponseObject, frozen=True):
    """The newest policy that an operator signed for a repository."""

    repository: str
    digest: str
    text: str
    by: str
    signed_at: str


class StandingGrantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Your yes beforehand: for which calls of which agent, how often, and for how many seconds."""

    agent: str
    count: int
    seconds: int
    run: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    comment: str | None = None


class GivenStandingGrant(ResponseObject, frozen=True):
    """A standing grant that was recorded."""

    id: str
    session: str
