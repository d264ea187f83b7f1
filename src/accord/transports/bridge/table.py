"""What one can ask of the bridge: one table for the socket, HTTP and the reference."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from accord.core.dialects.codes import CODES
from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import REPO, SHA
from accord.engine.opener import unreadable
from accord.engine.ports import StoreError

log = logging.getLogger("accord.bridge")

LARGEST_ASK = 1 << 20
SECONDS = 5.0
MOST_FILES = 10_000
USUAL_PAGE, LARGEST_PAGE = 50, 500

Repo = Annotated[str, Meta(pattern=REPO, description="the repository's id, `accord.repo`")]
Sha = Annotated[str, Meta(pattern=SHA, description="the commit's full id")]
Session = Annotated[
    str, Meta(min_length=1, max_length=128, description="the session; else the one bound here")
]
Fork = Annotated[str, Meta(max_length=128, description="the fork whose work it is")]
Branch = Annotated[
    str, Meta(max_length=1024, description="the branch it is on; a fork's, if it is one's")
]
Directory = Annotated[str, Meta(max_length=4096, description="the whole path of its `.pact`")]
Line = Annotated[str, Meta(max_length=4096)]
Value = Annotated[str, Meta(max_length=65_536)]


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook says; what it says besides is not read."""


class Status(Asking, frozen=True, kw_only=True):
    """Which server this is, and which sessions are bound to a repository."""

    repo: Repo | None = None


class CommitContext(Asking, frozen=True, kw_only=True):
    """What the trailers of a commit made now should say; nothing is changed."""

    repo: Repo
    session: Session | None = None
    fork: Fork | None = None
    branch: Branch = ""


class ExtendedMetadata(Asking, frozen=True, kw_only=True):
    """The whole redacted note of a commit that was linked."""

    repo: Repo
    sha: Sha


class Commits(Asking, frozen=True, kw_only=True):
    """The commits linked in a repository, oldest first."""

    repo: Repo
    session: Session | None = None
    after: Annotated[int, Meta(ge=0, le=1 << 53, description="behind this place")] = 0
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="at most so many")] = USUAL_PAGE


class CommitCreated(Asking, frozen=True, kw_only=True):
    """A commit was made: link it to what led to it, once, and say what its note holds."""

    repo: Repo
    sha: Sha
    session: Session | None = None
    fork: Fork | None = None
    decision: Annotated[
        str, Meta(max_length=64, description="`PVP-Decision` as its message has it")
    ] = ""
    parents: Annotated[tuple[Sha, ...], Meta(max_length=64, description="its parents")] = ()
    patch_id: Annotated[
        str, Meta(pattern=r"^[0-9a-f]{0,64}$", description="as `git patch-id --verbatim` says")
    ] = ""
    branch: Branch = ""
    merges: Annotated[
        tuple[Fork, ...],
        Meta(max_length=64, description="the forks that a merge commit brings in"),
    ] = ()
    files: Annotated[
        tuple[Line, ...], Meta(max_length=MOST_FILES, description="the paths it changes")
    ] = ()
    type: Annotated[str, Meta(max_length=64, description="its type, as in `feat(scope): …`")] = ""
    scope: Annotated[str, Meta(max_length=1024, description="its scope")] = ""
    message_trailers: Annotated[
        tuple[tuple[Line, Value], ...],
        Meta(max_length=256, description="its trailers; only its type is read from them"),
    ] = ()


class SessionStarted(Asking, frozen=True, kw_only=True):
    """Commits in this repository are of this session from now on."""

    repo: Repo
    session: Session
    directory: Directory = ""


class PactChanged(Asking, frozen=True, kw_only=True):
    """The log of a repository's pact has changed: mirror it now and tell its sessions."""

    repo: Repo
    directory: Annotated[
        str,
        Meta(min_length=1, max_length=4096, description="the whole path of its `.pact`"),
    ]


class Places(Asking, frozen=True, kw_only=True):
    """Where the pact of a repository lies, and what the server sees there."""

    repo: Repo


class PlaceRemoved(Asking, frozen=True, kw_only=True):
    """The pact of a repository lies there no longer: what only that place has counts no more."""

    repo: Repo
    directory: Annotated[
        str,
        Meta(min_length=1, max_length=4096, description="the whole path of its `.pact`"),
    ]
    force: Annotated[
        bool, Meta(description="even if a session works here and the place has what no other has")
    ] = False


class SessionEnded(Asking, frozen=True, kw_only=True):
    """Commits in this repository are of this session no longer."""

    repo: Repo
    session: Session


class MessageSaid(Asking, frozen=True, kw_only=True):
    """Whether the session has this message on record; nothing is ever taken in here."""

    session: Session
    id: Annotated[str, Meta(min_length=1, max_length=128, description="the message's id")]


class Reset(Asking, frozen=True, kw_only=True):
    """Where the next decision begins; what is linked stays linked."""

    repo: Repo
    session: Session | None = None
    fork: Fork | None = None


Answer = Mapping[str, Any]
Handler = Callable[[Any, Any], Awaitable[Answer]]


class Clerk(Protocol):
    """Who answers: one method for each action, by its name."""

    def method(self, name: str) -> Callable[[Any], Awaitable[Answer]]:
        """What answers this action."""
        ...


class Action(NamedTuple):
    """A row. `open`: over HTTP it may be asked without the token file."""

    method: Literal["GET", "POST"]
    name: str
    asking: type[Asking]
    open: bool = False

    @property
    def path(self) -> str:
        """Where HTTP has it."""
        return f"/{self.name}"

    @property
    def says(self) -> str:
        """What it does, in a sentence."""
        return (self.asking.__doc__ or "").partition("\n")[0]


ACTIONS: tuple[Action, ...] = (
    Action("GET", "status", Status, open=True),
    Action("GET", "commit-context", CommitContext, open=True),
    Action("GET", "commits", Commits, open=True),
    Action("GET", "extended-metadata", ExtendedMetadata),
    Action("POST", "commit-created", CommitCreated),
    Action("POST", "session-started", SessionStarted),
    Action("POST", "session-ended", SessionEnded),
    Action("POST", "pact-changed", PactChanged),
    Action("GET", "places", Places),
    Action("POST", "place-removed", PlaceRemoved),
    Action("POST", "message", MessageSaid),
    Action("POST", "reset", Reset),
)
BY_NAME = {row.name: row for row in ACTIONS}


def read_line(line: bytes) -> tuple[Action, dict[str, Any]]:
    """The action that a line names, and what it says of it; raises Refused."""
    said = as_object(line)
    name = said.pop("action", None)
    row = BY_NAME.get(name) if isinstance(name, str) else None
    if row is None:
        raise Refused(Why.MALFORMED, f"`action` is one of {', '.join(BY_NAME)}")
    return row, said


def as_object(data: bytes) -> dict[str, Any]:
    """A JSON object; raises Refused."""
    try:
        said = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as no:
        raise Refused(Why.MALFORMED, f"That is no JSON: {no}") from None
    if not isinstance(said, dict):
        raise Refused(Why.MALFORMED, "A JSON object is needed")
    return said


async def answered(
    clerk: Clerk, row: Action, said: Mapping[str, Any], *, text: bool = False
) -> Answer | Refused:
    """What the clerk says to it, in time; `text`: the values come from a query."""
    try:
        asking = msgspec.convert(said, row.asking, strict=not text)
        async with asyncio.timeout(SECONDS):
            return await clerk.method(row.name)(asking)
    except Refused as no:
        return no
    except msgspec.ValidationError as no:
        return Refused(Why.MALFORMED, str(no))
    except StoreError as error:
        return unreadable(error)
    except TimeoutError:
        return Refused(Why.UNAVAILABLE, "That took too long; try again")
    except Exception:
        log.exception("bridge.failed", extra={"action": row.name})
        return Refused(Why.INTERNAL, "Something went wrong here; nothing was changed")


def told(answer: Answer | Refused) -> tuple[Answer, int]:
    """The answer as it is sent, with its HTTP status."""
    if not isinstance(answer, Refused):
        return answer, 200
    codes = CODES[answer.why]
    problem = {"code": codes.pvp, "message": answer.detail, "details": answer.details or {}}
    return {"error": problem}, codes.http
