"""Pacts as the server read them from their repositories."""

from accord.api.responses import ResponseObject


class BoardSession(ResponseObject, frozen=True):
    """A session that is bound to the repository and that you are in."""

    id: str
    name: str


class PactEntry(ResponseObject, frozen=True):
    """A pact of a repository that a session of yours is bound to."""

    repo: str
    project: str
    sessions: tuple[BoardSession, ...]
    tasks: int
    accepted: int
    awaiting_review: int


class PactList(ResponseObject, frozen=True):
    """The pacts of your sessions."""

    pacts: tuple[PactEntry, ...]


class BoardSeat(ResponseObject, frozen=True):
    """A seat; `member` is who fills it in a session of yours, if anyone does."""

    id: str
    roles: tuple[str, ...]
    member: str | None
    name: str
    kind: str | None


class BoardTaskEvent(ResponseObject, frozen=True):
    """What happened to a task; `words` is the evidence, or the reason for changes."""

    at: str
    by: str
    kind: str
    words: str
    commit: str


class BoardTask(ResponseObject, frozen=True):
    """A task. Its owner does it, and only its reviewer accepts it, who is never the owner.

    `returned`: changes were asked for and nothing was shown since. `commit` was shown or accepted
    last. `history` has the newest events, oldest first.
    """

    id: str
    spec: str
    owner: str
    reviewer: str
    deps: tuple[str, ...]
    status: str
    returned: bool
    evidence: str
    reason: str
    commit: str
    created_at: str
    updated_at: str
    accepted_at: str | None
    history: tuple[BoardTaskEvent, ...]


class BoardFeature(ResponseObject, frozen=True):
    """Tasks that ship together; `open` are those that are not accepted and hold the merge back."""

    id: str
    branch: str
    status: str
    accepted: int
    total: int
    open: tuple[str, ...]
    tasks: tuple[BoardTask, ...]


class PactBoard(ResponseObject, frozen=True):
    """A pact. `trouble` says why something may be missing; `left_out` tasks are not shown."""

    repo: str
    project: str
    base_branch: str
    sessions: tuple[BoardSession, ...]
    events: int
    trouble: str
    left_out: int
    seats: tuple[BoardSeat, ...]
    features: tuple[BoardFeature, ...]
