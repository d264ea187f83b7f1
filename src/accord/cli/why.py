"""Why a line of code is there: the decision, who agreed, what was considered.

Ask about a line, a few lines, a file or a commit. A commit that was squashed or rebased is
followed to the decisions that it came from. What git holds is enough; where a server of this
machine answers, what it knows is added.

Examples:
  accord why src/auth.py:42
  accord why src/auth.py:40-60
  accord why src/auth.py
  accord why HEAD~3
  accord why src/auth.py:42 --json
"""

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accord.show import paint
from accord.show.prose import railed
from accord.show.text import count, line, listed, moment, wrapped

if TYPE_CHECKING:
    from accord.core.provenance.decision import DecisionCommit
    from accord.git.why import Reason

SHORT = 10
INDENT = "  "
MOST_SAID = 12
MOST_MESSAGES = 8
NOT_FOUND = 4
SLOW_S = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to ask about."""
    parser.add_argument("target", metavar="PATH[:LINE]|COMMIT", help="a line, a file or a commit")
    parser.add_argument("--whole", action="store_true", help="all of the conversation")
    parser.add_argument("--offline", action="store_true", help="only what git holds")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Find out and tell; exit code 4 where nothing is on record."""
    import time

    from accord.cli.git import there
    from accord.git import why
    from accord.git.history import History
    from accord.show.output import tell

    repo, began = History(), time.monotonic()
    there(repo)
    reasons = why.why(repo, why.target(repo, args.target))
    took = time.monotonic() - began
    if not args.offline and len(reasons) == 1:
        reasons = [why.ask_server(repo, each) for each in reasons]
    if args.json:
        tell({"target": plain(args.target), "reasons": [told(each) for each in reasons]})
    else:
        print("\n".join(answer(reasons, whole=args.whole)))
        if not args.offline and len(reasons) == 1:
            remembered(reasons[0], whole=args.whole)
        if took > SLOW_S:
            hint = "git commit-graph write --reachable --changed-paths"
            print(f"accord: `{hint}` makes this quicker", file=sys.stderr)
    return 0 if any(each.known for each in reasons) else NOT_FOUND


def answer(reasons: list["Reason"], *, whole: bool) -> Iterator[str]:
    """For a person; of several commits, each in short."""
    if not reasons:
        yield "This is not committed yet, so git knows of no reason"
    brief = len(reasons) > 1
    for number, reason in enumerate(reasons):
        yield from [""] if number else []
        yield from shown(reason, whole=whole, brief=brief)


def shown(reason: "Reason", *, whole: bool, brief: bool) -> Iterator[str]:
    """One commit."""
    from accord.core.provenance.record import decisions_of

    commit = reason.commit
    if len(reason.lines) == 1:
        only = reason.lines[0]
        yield f"{line(plain(only.path))}:{only.number}"
        yield from railed(plain(only.text), indent=INDENT)
    elif reason.lines:
        numbers = count(len(reason.lines), "line")
        yield f"{line(plain(reason.lines[0].path))}, {numbers}"
    yield f"{paint.yellow(commit.sha[:SHORT])} {paint.bold(line(plain(commit.subject)))}"
    yield f"{INDENT}{paint.dim(f'{line(plain(commit.author))}, {day(commit.at)}')}"
    made = decisions_of(reason.record)
    if not made:
        yield from unknown(reason)
        return
    if reason.by not in {"note", "commit"} or len(made) > 1:
        yield f"{INDENT}{paint.dim(origin(reason, len(made)))}"
    for each in made:
        yield from [] if brief else [""]
        yield from decision(each, commit.sha)
    if not brief:
        yield from conversation(reason.record, whole=whole)


def origin(reason: "Reason", number: int) -> str:
    """By which sign the decisions were found."""
    from accord.git.why import SIGNS

    return f"comes of {count(number, 'decision')}, found by {SIGNS[reason.by]}"


def unknown(reason: "Reason") -> Iterator[str]:
    """No record: what the message itself says, if anything."""
    message = reason.message
    yield f"{INDENT}No decision is on record for this commit"
    if message.session_id:
        yield f"{INDENT}Its message names the session {line(message.session_id)}"
    if message.decided_by:
        yield f"{INDENT}decided by   {people(map(str, message.decided_by))}, as the message says"
    if message.approved_by:
        yield f"{INDENT}approved by  {people(map(str, message.approved_by))}, as the message says"


def decision(made: "DecisionCommit", sha: str) -> Iterator[str]:
    """One decision: who, who agreed, with what, instead of what."""
    kind = f"  {line(made.decision_type)}" if made.decision_type else ""
    yield f"{INDENT}{paint.cyan(line(made.id))}{kind}"
    for name, value in facts(made, sha):
        if value:
            yield f"{INDENT * 2}{name:12} {value}"
    for each in made.alternatives_considered:
        what = line(each.description or each.id)
        because = f": {line(each.reason)}" if each.reason else ""
        yield from wrapped(f"instead of   {what}{because}", INDENT * 2)


def facts(made: "DecisionCommit", sha: str) -> Iterator[tuple[str, str]]:
    """Names and values; an empty value is not shown."""
    from accord.core.provenance import confidence

    score = made.confidence_score
    yield "session", " ".join(filter(None, (line(made.pvp_session), line(made.session_name))))
    yield "fork", line(made.fork)
    yield "decided by", people(made.decided_by)
    for each in made.approvals:
        what = f" for {line(each.action)}" if each.action else ""
        said = f": {line(each.comment)}" if each.comment else ""
        own = ", their own proposal" if each.self_approved else ""
        yield "approved by", f"{paint.green(line(each.by))}{what}{own}{said}"
    yield "reviewed by", people(made.reviewed_by)
    for ruled in made.verdicts:
        sure = f", confidence {ruled.confidence}" if ruled.confidence else ""
        yield "verdict", line(f"{ruled.batch}/{ruled.item}: {ruled.verdict or 'unknown'}{sure}")
    yield "tools", listed(line(each) for each in made.tools)
    yield "confidence", "" if score is None else f"{confidence.band(score)} ({score:.2f})"
    first = line(made.git_sha[:SHORT])
    yield "first as", "" if sha == made.git_sha or not first else f"{first} on {line(made.branch)}"
    yield "decided at", day(made.decided_at) if made.decided_at else ""
    yield "source", "" if made.position else "the commit's own trailers; no server vouches for it"


def conversation(record: dict[str, Any], *, whole: bool) -> Iterator[str]:
    """What was said, the beginning of each unless all is wanted."""
    from accord.core.provenance.record import thread_of

    said = list(thread_of(record).messages)
    if not said:
        return
    yield ""
    yield f"{INDENT}{paint.bold('What was said')}"
    kept = said if whole or len(said) <= MOST_MESSAGES else said[:MOST_MESSAGES]
    for each in kept:
        yield f"{INDENT}{paint.dim(day(each.timestamp))}  {line(each.sender)}"
        yield from wrapped(each.content, INDENT * 3, None if whole else MOST_SAID)
    if len(kept) < len(said):
        yield f"{INDENT}… {count(len(said) - len(kept), 'message')} more; --whole shows all"


def remembered(reason: "Reason", *, whole: bool) -> None:
    """What the server named by ACCORD_URL remembers, where the record has no conversation."""
    from accord.core.provenance.record import thread_of

    if not reason.known or thread_of(reason.record).messages:
        return
    from accord.cli.recalled import recalled
    from accord.show.prose import conversation as turned

    if turns := recalled(reason.record):
        print(
            "\n".join(["", f"{INDENT}{paint.bold('What was said')}", *turned(turns, whole=whole)])
        )


def people(names: Any) -> str:
    """`human:alice and ai:claude`."""
    return listed(line(each) for each in names)


def day(at: str) -> str:
    """A moment, to the minute."""
    return f"{moment(at):%Y-%m-%d %H:%M}"


def plain(text: str) -> str:
    """Words of git that may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def told(reason: "Reason") -> dict[str, Any]:
    """One commit for programs: the record as it is stored."""
    from accord.core.provenance.message import metadata

    commit = reason.commit
    return {
        "commit": commit.sha,
        "subject": plain(commit.subject),
        "author": plain(commit.author),
        "at": commit.at,
        "found_by": reason.by or None,
        "lines": [
            {"path": plain(each.path), "number": each.number, "text": plain(each.text)}
            for each in reason.lines
        ],
        "message": metadata(reason.message),
        "record": reason.record,
    }
