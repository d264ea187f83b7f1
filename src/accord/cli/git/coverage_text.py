"""What approvals cover of a commit, as text: covered, in part, or context."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from accord.show.labelled_values import LabelledValue
from accord.show.text import join_words, one_line, plural, replace_surrogates

if TYPE_CHECKING:
    from accord.core.provenance.coverage.coverage_extent import CoveredPaths
    from accord.core.provenance.decision_commit import DecisionCommit
    from accord.git.why import CommitExplanation

COVERED, CONTEXT, UNCOVERED = "covered", "context", "uncovered"
MAX_PATHS = 5
# Anyone with access to the repository can write a note.
UNCONFIRMED = ", by a record in git that no server confirmed"


class PathState(NamedTuple):
    """Whether approvals cover a changed path, and which."""

    path: str
    state: str
    entries: "tuple[CoveredPaths, ...]" = ()


def path_states(reason: "CommitExplanation") -> Iterator[PathState]:
    """The state of each changed path; context is what an approved run only has to do with."""
    from accord.core.provenance.decision_commit import decisions_of

    near = {
        path
        for made in decisions_of(reason.record)
        for entry in made.context
        for path in entry.paths
    }
    for file in reason.files:
        entries = reason.coverage.entries_of(file.path)
        state = COVERED if entries else CONTEXT if file.path in near else UNCOVERED
        yield PathState(file.path, state, entries)


def coverage_sentence(reason: "CommitExplanation") -> str:
    """One sentence on what approvals cover; empty if nothing was approved."""
    from accord.core.provenance.decision_commit import decisions_of

    if not any(made.votes or made.approvals for made in decisions_of(reason.record)):
        return ""
    if reason.path:
        return _sentence_about_file(reason)
    states = list(path_states(reason))
    covered = [state.path for state in states if state.state == COVERED]
    rest = [state.path for state in states if state.state != COVERED]
    if not covered:
        return "No approval covers this commit"
    if rest:
        return f"Approvals cover it in part: {_paths(covered)}, but not {_paths(rest)}"
    if reason.coverage.approvers:
        return f"Approvals cover all of it{_confirmation(reason)}"
    return f"Approvals cover all of it, but no one approved all of it alone{_confirmation(reason)}"


def _confirmation(reason: "CommitExplanation") -> str:
    """What to add where only a note says so, which anyone with access to the repository writes."""
    from accord.core.provenance.decision_commit import decisions_of

    covering = [made.id for made in decisions_of(reason.record) if made.coverage]
    if covering and all(id in reason.vouched for id in covering):
        return ""
    return UNCONFIRMED


def _sentence_about_file(reason: "CommitExplanation") -> str:
    path = one_line(replace_surrogates(reason.path))
    entries = reason.coverage.entries_of(reason.path)
    if not entries:
        return f"No approval covers {path} in this commit"
    who = join_words(sorted({one_line(entry.approver) for entry in entries}))
    together = ", together" if all(entry.together for entry in entries) else ""
    return f"The approval of {who} covers {path} in this commit{together}{_confirmation(reason)}"


CUT_CALL = "the record has the beginnings of its long texts; the whole call, redacted, is"


def approval_values(
    made: "DecisionCommit",
    reason: "CommitExplanation",
    shown: Callable[[str], str],
    mark: Callable[[str], str],
) -> Iterator[LabelledValue]:
    """Who approved what of a decision: all of the commit, a part of it, or only the context.

    `shown` is how a participant is named, `mark` how a name is marked that counts.
    """
    about = _texts_of_votes(made)
    whole = reason.coverage.approvers
    doubt = "" if made.id in reason.vouched else UNCONFIRMED
    for entry in _entries(made, reason):
        vote = about.get((entry.approver, entry.proposal), _about(made, entry.proposal))
        who = mark(shown(entry.approver))
        if entry.approver in whole:
            yield "approved by", f"{who}{vote}{doubt}"
        else:
            yield "in part", f"{who}{vote}, covers {_paths(entry.paths)}{doubt}"
    covering = {(entry.approver, entry.proposal) for entry in reason.coverage.entries}
    for (by, proposal), vote in about.items():
        if (by, proposal) not in covering:
            yield "context", f"{shown(by)} said yes{vote}; this covers nothing here"
    for tool in made.tool_executions:
        for by in tool.standing:
            about_run = _about(made, tool.id)
            yield "standing", f"{shown(by)} had granted calls alike{about_run}; this covers nothing"
        if tool.call_digest and not tool.elsewhere:
            what = one_line(tool.description or tool.name)
            yield "cut", f"{what}: {CUT_CALL} {one_line(tool.call_digest)}"


def _entries(made: "DecisionCommit", reason: "CommitExplanation") -> "Iterator[CoveredPaths]":
    """The coverage by runs and merges of this decision; of a file, only what covers it."""
    own = {tool.id for tool in made.tool_executions} | {merge.id for merge in made.merges}
    for entry in reason.coverage.entries:
        if entry.proposal in own and (not reason.path or reason.path in entry.paths):
            yield entry


def _texts_of_votes(made: "DecisionCommit") -> dict[tuple[str, str], str]:
    """What each vote was about and what was said with it, by voter and proposal."""
    texts: dict[tuple[str, str], str] = {}
    for vote in (*made.approvals, *made.votes):
        own = ", their own proposal" if vote.self_approved else ""
        comment = f": {one_line(vote.comment)}" if vote.comment else ""
        texts[vote.by, vote.action] = f"{_about(made, vote.action)}{own}{comment}"
    return texts


def _about(made: "DecisionCommit", action: str) -> str:
    what = action_text(action, made)
    return f" for {one_line(what)}" if what else ""


def action_text(id: str, made: "DecisionCommit") -> str:
    """What an approval was for: its description if the record has one, else its id."""
    for tool in made.tool_executions:
        if tool.id == id:
            return tool.description or tool.name
    for merge in made.merges:
        if merge.id == id:
            return f"the merge of {merge.fork}"
    return id


def claim_value(reason: "CommitExplanation") -> str:
    """Approvers whom only the message names; empty if there are none."""
    claimed = {str(participant) for participant in reason.message.approved_by}
    unconfirmed = sorted(claimed - set(reason.coverage.approvers))
    if not unconfirmed:
        return ""
    names = join_words(map(one_line, unconfirmed))
    return f"its message says that {names} approved; no record of that covers it"


def _paths(paths: "list[str] | tuple[str, ...]") -> str:
    shown = [one_line(replace_surrogates(path)) for path in paths[:MAX_PATHS]]
    more = len(paths) - len(shown)
    return join_words([*shown, *([plural(more, "other file")] if more else [])])
