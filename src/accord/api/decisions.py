"""Decisions behind commits, as the server answers from its records."""

from typing import Literal

from accord.api.responses import ResponseObject


class DecisionEntry(ResponseObject, frozen=True):
    """The decision behind a commit; `covers` says what of the commit people approved.

    `repo` is the repository's id, `title` the reason that the last call gave. `covers` is `whole`,
    `part` or `none`, and empty in records that do not know.
    """

    id: str
    repo: str
    sha: str
    title: str
    session: str
    session_name: str
    fork: str | None
    branch: str
    decision_type: str
    decided_at: str
    decided_by: tuple[str, ...]
    approved_by: tuple[str, ...]
    covers: str
    files: tuple[str, ...]


class DecisionList(ResponseObject, frozen=True):
    """Decisions that you may read, newest first; `kind` says how `at` was understood."""

    kind: Literal["newest", "decision", "commit", "path", "words"]
    path: str
    line: str
    decisions: tuple[DecisionEntry, ...]
    has_more: bool


class DecisionApproval(ResponseObject, frozen=True):
    """An approval at a gate: of the whole commit, of `paths`, or only of something near it.

    `together`: the paths are covered only with what others approved.
    """

    by: str
    gate: str
    action: str
    comment: str
    at: str
    self_approved: bool
    extent: Literal["whole", "part", "context"]
    paths: tuple[str, ...]
    together: bool


class DecisionAlternative(ResponseObject, frozen=True):
    """Something that was considered and not done: a fork, a proposal or a merge."""

    kind: str
    id: str
    description: str
    reason: str
    by: tuple[str, ...]
    branch: str


class DecisionTool(ResponseObject, frozen=True):
    """A call that ran; `approved_by` are those who let it run."""

    id: str
    name: str
    agent: str
    category: str
    risk: str
    description: str
    outcome: str
    approved_by: tuple[str, ...]
    paths: tuple[str, ...]


class DecisionMessage(ResponseObject, frozen=True):
    """A message of the conversation, without secrets; `content` is quoted data of its sender."""

    id: str
    type: str
    sender: str
    content: str
    timestamp: str


class DecisionDetail(DecisionEntry, frozen=True):
    """All that the server has on record about one decision.

    `since` and `until` are the range of the session's messages, `stream`, `version` and `hash` the
    place on the log's chain at which it was made.
    """

    names: dict[str, str]
    approvals: tuple[DecisionApproval, ...]
    alternatives: tuple[DecisionAlternative, ...]
    tools: tuple[DecisionTool, ...]
    conversation: tuple[DecisionMessage, ...]
    parents: tuple[str, ...]
    first_sha: str
    since: int
    until: int
    stream: str
    version: int
    hash: str
