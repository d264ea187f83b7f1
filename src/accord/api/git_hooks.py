"""What a git hook asks of a server elsewhere, and its answer; each action uses some fields."""

from typing import Any

from msgspec import Struct


class GitHookRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters of an action; the reference of the git bridge lists those of each."""

    repo: str | None = None
    session: str | None = None
    fork: str | None = None
    branch: str | None = None
    sha: str | None = None


class GitHookAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to an action; which fields it has depends on the action."""

    repo: str | None = None
    session: str | None = None
    sessions: list[str] | None = None
    decision: str | None = None
    note: dict[str, Any] | None = None
