"""What concerns the caller in all sessions; the view `core/views/home.py` produces the values."""

from typing import Literal

from accord.api.responses import GateCard, OpenProposal, ResponseObject, StandingGrantSummary
from accord.api.threads import ThreadDetail
from accord.core.room.state import GateOutcome


class Stall(ResponseObject, frozen=True):
    """Something that does not go on by itself.

    `id` is that of the held proposal, of the unanswered interrupt, of the stopped agent, of the
    agent whose last answer ended with an error, of the call that was allowed and whose agent is
    away, or of the paused session.
    """

    session: str
    session_name: str
    kind: Literal[
        "proposal_held",
        "interrupt_unanswered",
        "agent_stopped",
        "agent_failed",
        "agent_away",
        "session_paused",
    ]
    id: str
    agents: tuple[str, ...]
    proposal: OpenProposal | None
    fork: str | None
    fork_name: str | None
    people: dict[str, str]


class EndedGate(ResponseObject, frozen=True):
    """How and when a gate ended; `by` approved or rejected it, some by a `standing` grant.

    `taken_back`: the approval was taken back before it was used.
    """

    session: str
    session_name: str
    id: str
    action_type: str
    action_ref: str
    initiator: str
    tool_name: str
    outcome: GateOutcome
    by: tuple[str, ...]
    standing: tuple[str, ...]
    reason: str
    taken_back: bool
    ended_at: str
    fork: str | None
    fork_name: str | None
    people: dict[str, str]


class Silence(ResponseObject, frozen=True):
    """A member was addressed in a thread and has not answered; shown to operators."""

    thread: str
    agent: str
    message: str
    by: str
    since: str


class Question(ResponseObject, frozen=True):
    """Something in a thread that waits for you.

    `addressed`: a message names you, and you have not posted since. `finding_open`: another
    reported a finding that has no fix. `finding_fixed`: a fix was pushed and you may verify it.
    """

    thread: str
    title: str
    kind: Literal["addressed", "finding_open", "finding_fixed"]
    message_id: str
    seq: int
    by: str
    since: str | None
    severity: str
    task_id: str


class StandingGrantCard(StandingGrantSummary, frozen=True):
    """A standing grant in its session."""

    session: str
    session_name: str


class HomeCounts(ResponseObject, frozen=True):
    """Numbers, also of what did not fit; `other_gates` are open and not for you to vote on."""

    gates: int
    awaiting_my_vote: int
    other_gates: int
    stalls: int
    silences: int
    questions: int
    unread_threads: int


class Home(ResponseObject, frozen=True):
    """What concerns you; the gate that ends first comes first."""

    gates: tuple[GateCard, ...]
    stalls: tuple[Stall, ...]
    ended_gates: tuple[EndedGate, ...]
    standing_grants: tuple[StandingGrantCard, ...]
    silences: tuple[Silence, ...]
    questions: tuple[Question, ...]
    unread_threads: tuple[ThreadDetail, ...]
    counts: HomeCounts
    has_more: bool


class SessionHome(Home, frozen=True):
    """What one session contributes to a home; replaces what was said about it before."""

    session: str


class ThreadHome(ResponseObject, frozen=True):
    """A thread that changed, as you may read it now, and all that waits for you in it."""

    thread: ThreadDetail
    questions: tuple[Question, ...]
