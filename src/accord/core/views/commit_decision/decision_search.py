"""Finds decisions by path, commit, id or words, and says what each approval covers."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from accord.core.provenance.coverage.coverage_extent import WHOLE
from accord.core.provenance.decision_commit import Approval, DecisionCommit, PathCoverage

QueryKind = Literal["newest", "decision", "commit", "path", "words"]
Extent = Literal["whole", "part", "context"]

DECISION_PREFIX = "dec_"
MAX_QUERY_LENGTH = 400
MAX_TITLE_LENGTH = 160
# A shorter run of such letters is more likely a word.
_commit = re.compile(r"(?=.*[0-9])[0-9a-f]{7,64}|[0-9a-f]{40}", re.ASCII).fullmatch
_place = re.compile(
    r"(?P<path>\S*[/.]\S*?)(?::(?P<line>\d{1,7}(?:-\d{1,7})?))?", re.ASCII
).fullmatch


class DecisionQuery(NamedTuple):
    """What is looked for; `line` is a line or range of the path."""

    kind: QueryKind
    text: str = ""
    line: str = ""


def parse_query(text: str) -> DecisionQuery:
    """What a person means by this text."""
    text = text[:MAX_QUERY_LENGTH].strip()
    if not text:
        return DecisionQuery("newest")
    if text.startswith(DECISION_PREFIX):
        return DecisionQuery("decision", text)
    if _commit(text.lower()):
        return DecisionQuery("commit", text.lower())
    if found := _place(text):
        path = found["path"].removeprefix("./").rstrip("/")
        return DecisionQuery("path", path, found["line"] or "")
    return DecisionQuery("words", text)


def is_match(query: DecisionQuery, decision: DecisionCommit, words: str) -> bool:
    """Whether a decision is one of those looked for; `words` is its `searchable_text`."""
    match query.kind:
        case "decision":
            return decision.id == query.text
        case "commit":
            shas = (decision.git_sha, decision.first_sha)
            return any(sha.startswith(query.text) for sha in shas if sha)
        case "path":
            return any(is_below(query.text, path) for path in decision.files_changed)
        case "words":
            return all(word in words for word in query.text.casefold().split())
        case _:  # the newest, whatever they are about
            return True


def is_below(wanted: str, path: str) -> bool:
    """Whether a path is the wanted one, in that folder, or ends with it."""
    return path == wanted or path.startswith(f"{wanted}/") or path.endswith(f"/{wanted}")


def searchable_text(decision: DecisionCommit) -> str:
    """All words about a decision that are not its conversation."""
    return "\n".join(_texts(decision)).casefold()


def _texts(decision: DecisionCommit) -> Iterator[str]:
    yield from (decision.session_name, decision.branch, *decision.decided_by)
    yield from decision.files_changed
    for tool in decision.tool_executions:
        yield from (tool.name, tool.description)
    for option in decision.alternatives_considered:
        yield from (option.description, option.reason)
    for merge in decision.merges:
        yield merge.summary
    for vote in decision.votes:
        yield from (vote.by, vote.comment)


def title_of(decision: DecisionCommit) -> str:
    """In a few words: the merge, the last call that gives a reason, or the files."""
    summaries = [merge.summary for merge in decision.merges]
    reasons = [tool.description for tool in decision.tool_executions]
    said = next((text.strip() for text in (*summaries, *reversed(reasons)) if text.strip()), "")
    files = ", ".join(decision.files_changed[:3])
    more = len(decision.files_changed) - 3
    changed = f"Changes {files}" + (f" and {more} more" if more > 0 else "") if files else ""
    title = " ".join((said or changed or f"Decision in {decision.session_name}").split())
    return title if len(title) <= MAX_TITLE_LENGTH else f"{title[: MAX_TITLE_LENGTH - 1]}…"


class ShownApproval(NamedTuple):
    """An approval, and what of the commit it covers."""

    approval: Approval
    extent: Extent
    paths: tuple[str, ...] = ()
    together: bool = False


def shown_approvals(decision: DecisionCommit) -> list[ShownApproval]:
    """All approvals at gates, those that cover the whole commit first."""
    votes = {(vote.gate, vote.by): vote for vote in (*decision.votes, *decision.approvals)}
    shown = [_shown(decision, vote) for vote in votes.values()]
    order = ("whole", "part", "context")
    return sorted(shown, key=lambda each: order.index(each.extent))


def _shown(decision: DecisionCommit, vote: Approval) -> ShownApproval:
    covering = _about(decision.coverage, vote)
    paths = tuple(dict.fromkeys(path for each in covering for path in each.paths))
    together = any(each.together for each in covering)
    is_whole = decision.covers == WHOLE and vote.by in decision.approved_by
    if is_whole and (paths or vote in decision.approvals):
        return ShownApproval(vote, "whole", paths, together)
    if paths:
        return ShownApproval(vote, "part", paths, together)
    near = _about(decision.context, vote)
    return ShownApproval(vote, "context", tuple(path for each in near for path in each.paths))


def _about(coverage: tuple[PathCoverage, ...], vote: Approval) -> list[PathCoverage]:
    """What this approval of this action covers."""
    return [each for each in coverage if (each.approver, each.proposal) == (vote.by, vote.action)]
