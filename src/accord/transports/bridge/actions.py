"""The bridge's actions as one table, for the Unix socket, HTTP and the reference; their rate."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_links import REPO_PATTERN, SHA_PATTERN
from accord.engine.ports import StoreError
from accord.engine.streams.stream_cache import unreadable_refusal

log = logging.getLogger("accord.bridge")

MAX_REQUEST_BYTES = 1 << 20
ACTION_TIMEOUT_S = 5.0
MAX_FILES = 10_000
# Far above what hooks need, far below what would hurt.
REQUESTS_PER_SECOND = 50.0
REQUEST_BURST = 200.0
DEFAULT_LINKS_PER_PAGE, MAX_LINKS_PER_PAGE = 50, 500

Repo = Annotated[str, Meta(pattern=REPO_PATTERN, description="the repository's id, `accord.repo`")]
Sha = Annotated[str, Meta(pattern=SHA_PATTERN, description="the commit's full id")]
Session = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        description="the session; by default the one bound to the repository",
    ),
]
Fork = Annotated[str, Meta(max_length=128, description="the fork the commit belongs to")]
Branch = Annotated[
    str,
    Meta(max_length=1024, description="the branch of the commit; a fork's branch selects the fork"),
]
Directory = Annotated[str, Meta(max_length=4096, description="the absolute path of its `.pact`")]
Line = Annotated[str, Meta(max_length=4096)]
Value = Annotated[str, Meta(max_length=65_536)]


Root = Annotated[
    str,
    Meta(max_length=4096, description="the directory of the work tree, which calls may name"),
]
Committer = Annotated[str, Meta(max_length=1024, description="the committer's name in git")]
Blob = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})?$")]
Mode = Annotated[str, Meta(pattern=r"^(?:[0-7]{6})?$")]


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A changed path: its blob and mode in the first parent and in the commit; empty for none."""

    path: Line
    before: Blob = ""
    after: Blob = ""
    old_mode: Mode = ""
    mode: Mode = ""
    by_hand: bool = True


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of an action; unknown fields are ignored."""


class StatusRequest(ActionRequest, frozen=True, kw_only=True):
    """Which server this is, and which sessions are bound to a repository."""

    repo: Repo | None = None


class CommitContextRequest(ActionRequest, frozen=True, kw_only=True):
    """What the trailers of a commit made now should contain; read-only."""

    repo: Repo
    session: Session | None = None
    fork: Fork | None = None
    branch: Branch = ""
    root: Root = ""
    committer: Committer = ""


class ContentRequest(ActionRequest, frozen=True, kw_only=True):
    """A request about the content of a commit."""

    repo: Repo
    session: Session | None = None
    fork: Fork | None = None
    branch: Branch = ""
    root: Root = ""
    parents: Annotated[tuple[Sha, ...], Meta(max_length=64, description="ids of its parents")] = ()
    tree: Annotated[Blob, Meta(description="the id of its tree")] = ""
    changes: Annotated[
        tuple[FileFacts, ...] | None,
        Meta(
            description="all paths that differ from its first parent; without it nothing is covered"
        ),
    ] = None
    contents: Annotated[
        dict[Line, str],
        Meta(description="the content before the commit of the paths that `needs` named"),
    ] = {}
    final: Annotated[
        bool, Meta(description="decide with what is there, instead of answering with `needs`")
    ] = False
    line_endings: Annotated[
        tuple[Line, ...],
        Meta(
            max_length=MAX_FILES,
            description="paths that `needs` named and whose line endings git converts",
        ),
    ] = ()


class CommitCoverageRequest(ContentRequest, frozen=True, kw_only=True):
    """Which approvals cover the content of a commit made now; read-only."""

    committer: Committer = ""


class ExtendedMetadataRequest(ActionRequest, frozen=True, kw_only=True):
    """The complete redacted note of a linked commit."""

    repo: Repo
    sha: Sha


class CommitsRequest(ActionRequest, frozen=True, kw_only=True):
    """The commits linked in a repository, oldest first."""

    repo: Repo
    session: Session | None = None
    after: Annotated[int, Meta(ge=0, le=1 << 53, description="only links after this version")] = 0
    limit: Annotated[
        int, Meta(ge=1, le=MAX_LINKS_PER_PAGE, description="maximum number of links")
    ] = DEFAULT_LINKS_PER_PAGE


class CommitCreatedRequest(ContentRequest, frozen=True, kw_only=True):
    """Link a new commit to the decision behind it, once, and return its note."""

    sha: Sha
    decision: Annotated[
        str, Meta(max_length=64, description="`PVP-Decision` from the commit message")
    ] = ""
    patch_id: Annotated[
        str, Meta(pattern=r"^[0-9a-f]{0,64}$", description="output of `git patch-id --verbatim`")
    ] = ""
    committer: Committer = ""
    merges: Annotated[
        tuple[Fork, ...],
        Meta(max_length=64, description="forks merged by a merge commit"),
    ] = ()
    files: Annotated[tuple[Line, ...], Meta(max_length=MAX_FILES, description="changed paths")] = ()
    type: Annotated[str, Meta(max_length=64, description="commit type, as in `feat(scope): …`")] = (
        ""
    )
    scope: Annotated[str, Meta(max_length=1024, description="commit scope")] = ""
    made_at: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 53,
            description="when it was made, in milliseconds since 1970, if no server answered then; "
            "only what was recorded until then belongs to it",
        ),
    ] = 0
    message_trailers: Annotated[
        tuple[tuple[Line, Value], ...],
        Meta(max_length=256, description="its trailers; only the decision type is read from them"),
    ] = ()


class SessionStartedRequest(ActionRequest, frozen=True, kw_only=True):
    """From now on, link commits in this repository to this session."""

    repo: Repo
    session: Session
    directory: Directory = ""


class PactChangedRequest(ActionRequest, frozen=True, kw_only=True):
    """The log of a repository's pact has changed: mirror it now and notify its sessions."""

    repo: Repo
    directory: Annotated[
        str,
        Meta(min_length=1, max_length=4096, description="the absolute path of its `.pact`"),
    ]


class PlacesRequest(ActionRequest, frozen=True, kw_only=True):
    """The directories of a repository's pact, and the state of each."""

    repo: Repo


class PlaceRemovedRequest(ActionRequest, frozen=True, kw_only=True):
    """Forget a directory of the pact; changes that exist only there no longer count."""

    repo: Repo
    directory: Annotated[
        str,
        Meta(min_length=1, max_length=4096, description="the absolute path of its `.pact`"),
    ]
    force: Annotated[
        bool,
        Meta(description="even if a bound session needs changes that only exist there"),
    ] = False


class SessionEndedRequest(ActionRequest, frozen=True, kw_only=True):
    """No longer link commits in this repository to this session."""

    repo: Repo
    session: Session


class MessageKnownRequest(ActionRequest, frozen=True, kw_only=True):
    """Whether the session has recorded this message; read-only."""

    session: Session
    id: Annotated[str, Meta(min_length=1, max_length=128, description="the message's id")]


class ResetRequest(ActionRequest, frozen=True, kw_only=True):
    """Where the next decision begins; existing links are kept."""

    repo: Repo
    session: Session | None = None
    fork: Fork | None = None


ActionResponse = Mapping[str, Any]
ActionHandler = Callable[[Any, Any], Awaitable[ActionResponse]]


class BridgeHandler(Protocol):
    """Handles actions, one method per action name."""

    def handler_of(self, name: str) -> Callable[[Any], Awaitable[ActionResponse]]:
        """The handler of this action; raises Refused while the server stops."""
        ...


class RequestRate:
    """One bucket for all callers, since they are the same user."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.requests_left = REQUEST_BURST
        self.refilled_at = now()

    def charge(self) -> None:
        """Charge one request; raises Refused over the limit."""
        now = self.now()
        self.requests_left = min(
            REQUEST_BURST, self.requests_left + (now - self.refilled_at) * REQUESTS_PER_SECOND
        )
        self.refilled_at = now
        if self.requests_left < 1:
            wait = max(1, int((1 - self.requests_left) / REQUESTS_PER_SECOND * 1000))
            raise Refused(
                Reason.TOO_MANY, f"Too many requests; wait {wait} ms", {"retry_after_ms": wait}
            )
        self.requests_left -= 1


class Action(NamedTuple):
    """One action; `public` actions need no token file over HTTP."""

    method: Literal["GET", "POST"]
    name: str
    request: type[ActionRequest]
    public: bool = False

    @property
    def path(self) -> str:
        return f"/{self.name}"

    @property
    def summary(self) -> str:
        """The first line of the request's docstring."""
        return (self.request.__doc__ or "").partition("\n")[0]


ACTIONS: tuple[Action, ...] = (
    Action("GET", "status", StatusRequest, public=True),
    Action("GET", "commit-context", CommitContextRequest, public=True),
    Action("POST", "commit-coverage", CommitCoverageRequest),
    Action("GET", "commits", CommitsRequest, public=True),
    Action("GET", "extended-metadata", ExtendedMetadataRequest),
    Action("POST", "commit-created", CommitCreatedRequest),
    Action("POST", "session-started", SessionStartedRequest),
    Action("POST", "session-ended", SessionEndedRequest),
    Action("POST", "pact-changed", PactChangedRequest),
    Action("GET", "places", PlacesRequest),
    Action("POST", "place-removed", PlaceRemovedRequest),
    Action("POST", "message", MessageKnownRequest),
    Action("POST", "reset", ResetRequest),
)
ACTION_BY_NAME = {action.name: action for action in ACTIONS}


def parse_line(line: bytes) -> tuple[Action, dict[str, Any]]:
    """The action named in a line, and its parameters; raises Refused."""
    parameters = parse_object(line)
    name = parameters.pop("action", None)
    action = ACTION_BY_NAME.get(name) if isinstance(name, str) else None
    if action is None:
        raise Refused(Reason.MALFORMED, f"`action` must be one of {', '.join(ACTION_BY_NAME)}")
    return action, parameters


def parse_object(data: bytes) -> dict[str, Any]:
    """A JSON object; raises Refused."""
    try:
        parameters = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(Reason.MALFORMED, f"Invalid JSON: {error}") from None
    if not isinstance(parameters, dict):
        raise Refused(Reason.MALFORMED, "Send a JSON object")
    return parameters


async def run_action(
    handlers: BridgeHandler, action: Action, parameters: Mapping[str, Any], *, text: bool = False
) -> ActionResponse | Refused:
    """Run the action with a timeout; `text` when the parameters come from a query string."""
    try:
        request = msgspec.convert(parameters, action.request, strict=not text)
        async with asyncio.timeout(ACTION_TIMEOUT_S):
            return await handlers.handler_of(action.name)(request)
    except Refused as error:
        return error
    except msgspec.ValidationError as error:
        return Refused(Reason.MALFORMED, str(error))
    except StoreError as error:
        return unreadable_refusal(error)
    except TimeoutError:
        return Refused(Reason.UNAVAILABLE, "The action timed out; try again")
    except Exception:
        log.exception("bridge.failed", extra={"action": action.name})
        return Refused(
            Reason.INTERNAL, "Internal error; nothing was changed. The server's log has the details"
        )
