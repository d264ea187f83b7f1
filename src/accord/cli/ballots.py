"""Open gates of the caller, and a vote on one of them."""

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from accord.cli import steer, where
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why
from accord.show import paint
from accord.show.text import invocation, line, missing

if TYPE_CHECKING:
    from accord.client import Client

MADE = 26  # letters of an id that the server made; whoever types all of them means that gate


class Waiting(NamedTuple):
    """An open gate in its session."""

    session: dict[str, Any]
    gate: dict[str, Any]


class Found(NamedTuple):
    """What waits for the caller, and sessions left behind in which something waits."""

    open: list[Waiting]
    elsewhere: list[dict[str, Any]]
    me: str = ""
    sessions: int = 1


async def gather(args: argparse.Namespace) -> Found:
    """The open gates of one session, or of all of the caller's."""
    async with where.client(args) as client:
        if args.session:
            return Found(await inside(client, args.session), [], client.id)
        return await everywhere(client)


async def everywhere(client: "Client") -> Found:
    """Over all sessions the caller is in, or fell out of for want of a connection."""
    sessions = [msgspec.to_builtins(each) for each in await client.sessions()]
    asking = [each for each in sessions if each["open_gates"]]
    mine = [each for each in asking if each["standing"] == "member" or each["lost"]]
    found = [gate for each in mine for gate in await inside(client, each["id"])]
    left = [each for each in asking if each not in mine]
    return Found(found, left, client.id, len(sessions))


async def inside(client: "Client", session: str) -> list[Waiting]:
    """Of this session; who is not a member becomes one first, if the server lets them."""
    await steer.inside(client, session)
    return await outside(client, session)


async def outside(client: "Client", session: str) -> list[Waiting]:
    """Of this session, as a member sees them."""
    detail = msgspec.to_builtins(await client.session(session))
    return [Waiting(detail, gate) for gate in detail["gates"]]


async def vote(
    args: argparse.Namespace, ballot: Callable[[str, str], Body], *, rejects: bool = False
) -> None:
    """Find the gate, vote, and tell what became of it."""
    from accord.show.output import tell

    async with where.client(args) as client:
        if args.session:
            found = await inside(client, args.session)
        else:
            found = (await everywhere(client)).open
        chosen = pick(args.gate, found)
        session, gate = chosen.session["id"], chosen.gate["id"]
        again = not rejects and has_approved(chosen.gate, client.id)
        if not again:
            await client.post(session, ballot(gate, client.id), ref=gate)
        now = await outside(client, session)
    still = next((each.gate for each in now if each.gate["id"] == gate), None)
    if args.json:
        tell(outcome(chosen, still, rejected=rejects))
    else:
        print(sentence(chosen, still, rejected=rejects, again=again))


def has_approved(gate: dict[str, Any], me: str) -> bool:
    """Whether another yes of the same person would change nothing."""
    return me in gate["approvals"] and bool(gate["lacks"])


def pick(word: str, found: list[Waiting]) -> Waiting:
    """The one gate meant: its id, its proposal, or the beginning of either.

    Agents choose ids too, so one that is also the beginning of another decides nothing.
    """
    near = [each for each in found if any(name.startswith(word) for name in names(each))]
    same = [each for each in near if each.gate["id"] == word and len(word) >= MADE]
    match same or near:
        case [one]:
            return one
        case []:
            raise Refused(Why.UNKNOWN, no_gate(line(word)))
        case several:
            ids = ", ".join(line(each.gate["id"]) for each in several)
            detail = f"{line(word)} could be {ids}; write a whole id, or --session"
            raise Refused(Why.MALFORMED, detail)


def no_gate(word: str) -> str:
    """Where gates are, also those of sessions one is not in."""
    return (
        f"There is no open gate {word} in your sessions; `accord gates` lists them, "
        "and for a session you are not in yet, `accord gates --session ID` joins it"
    )


def names(waiting: Waiting) -> tuple[str, str]:
    """What a gate may be called."""
    return waiting.gate["id"], waiting.gate["request"]["action_ref"]


def outcome(chosen: Waiting, still: dict[str, Any] | None, *, rejected: bool) -> dict[str, Any]:
    """What became of it, for a program."""
    gate = still or chosen.gate
    state = "open" if still else "rejected" if rejected else "passed"
    return {
        "session": chosen.session["id"],
        "gate": gate["id"],
        "action": gate["request"]["action_ref"],
        "state": state,
        "approvals_received": gate["approvals_received"],
        "approvals_required": gate["approvals_required"],
    }


def sentence(
    chosen: Waiting, still: dict[str, Any] | None, *, rejected: bool, again: bool = False
) -> str:
    """What became of it, for a person, and what it was."""
    said = verdict(chosen, still, rejected=rejected, again=again)
    return "\n".join([said, *subject(chosen)])


def subject(chosen: Waiting) -> Iterator[str]:
    """What would be run, and in which session."""
    from accord.show.cards import INDENT
    from accord.show.prose import railed

    if action := chosen.gate.get("action"):
        yield from railed(invocation(action["arguments"]), indent=INDENT)
    session = line(chosen.session["name"]) or line(chosen.session["id"])
    yield f"{INDENT}in {session}"


def verdict(
    chosen: Waiting, still: dict[str, Any] | None, *, rejected: bool, again: bool = False
) -> str:
    """What became of it, in a sentence."""
    who, action = line(chosen.gate["initiator"]), chosen.gate.get("action")
    what = f"run {line(action['tool_name'])}" if action else "go on"
    if rejected:
        return f"{paint.red('Rejected.')} {who} may not {what}, and was told why."
    if still is None and again:
        return f"{who} did not wait for another yes of yours; `accord session log` tells more."
    if still is None:
        return f"{paint.green('Approved')}, and that was enough: {who} may {what} now."
    done = "You have approved this already." if again else "Approved."
    return f"{paint.green(done)} {needed(still)} before {who} may {what}."


def needed(gate: dict[str, Any]) -> str:
    """What is still missing, as the beginning of a sentence."""
    said = missing(gate["lacks"], gate["approvals"]) or "1 more approval"
    plain = gate["request"]["quorum"].get("type") == "any"
    return f"{said} needed" if plain else f"It still needs {said}"
