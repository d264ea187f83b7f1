"""Open gates of the caller, and a vote on one of them."""

import argparse
from collections.abc import Callable, Iterator, Sequence
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


class Holding(NamedTuple):
    """A proposal that a decision holds, in its session."""

    session: dict[str, Any]
    tool: dict[str, Any]


class Found(NamedTuple):
    """What waits for the caller or is held, and sessions left behind in which something waits."""

    open: list[Waiting]
    elsewhere: list[dict[str, Any]]
    me: str = ""
    sessions: int = 1
    held: Sequence[Holding] = ()


async def gather(args: argparse.Namespace) -> Found:
    """The open gates of one session, or of all of the caller's."""
    async with where.client(args) as client:
        if args.session:
            return gathered([await inside(client, args.session)], [], client.id)
        return await everywhere(client)


def gathered(
    details: list[dict[str, Any]], left: list[dict[str, Any]], me: str, sessions: int = 1
) -> Found:
    """What is open in these sessions, and what is held."""
    from accord.show.cards import held

    gates = [Waiting(each, gate) for each in details for gate in each["gates"]]
    waiting = [Holding(each, tool) for each in details for tool in held(each)]
    return Found(gates, left, me, sessions, waiting)


async def everywhere(client: "Client") -> Found:
    """Over all sessions the caller is in, or fell out of for want of a connection."""
    sessions = [msgspec.to_builtins(each) for each in await client.sessions()]
    asking = [each for each in sessions if each["open_gates"]]
    stirring = [each for each in sessions if each["open_gates"] or each["held"]]
    mine = [each for each in stirring if each["standing"] == "member" or each["lost"]]
    details = [await inside(client, each["id"]) for each in mine]
    left = [each for each in asking if each not in mine]
    return gathered(details, left, client.id, len(sessions))


async def inside(client: "Client", session: str) -> dict[str, Any]:
    """This session; who is not a member becomes one first, if the server lets them."""
    await steer.inside(client, session)
    return await outside(client, session)


async def outside(client: "Client", session: str) -> dict[str, Any]:
    """This session, as a member sees it."""
    detail: dict[str, Any] = msgspec.to_builtins(await client.session(session))
    return detail


async def vote(
    args: argparse.Namespace, ballot: Callable[[str, str], Body], *, rejects: bool = False
) -> None:
    """Find the gate, vote, and tell what became of it."""
    from accord.show.output import tell

    async with where.client(args) as client:
        if args.session:
            found = gathered([await inside(client, args.session)], [], client.id)
        else:
            found = await everywhere(client)
        if rejects and (let_go := holding(args.gate, found)):
            await drop(client, let_go, args)
            return
        chosen = pick(args.gate, found.open, found.held)
        session, gate = chosen.session["id"], chosen.gate["id"]
        again = not rejects and has_approved(chosen.gate, client.id)
        if not again:
            await client.post(session, ballot(gate, client.id), ref=gate)
        now = await outside(client, session)
    still = next((each for each in now["gates"] if each["id"] == gate), None)
    if args.json:
        tell(outcome(chosen, still, rejected=rejects))
    else:
        print(sentence(chosen, still, rejected=rejects, again=again))


def holding(word: str, found: Found) -> Holding | None:
    """The one proposal meant, if it is held and no gate is meant by the word."""
    gates = any(name.startswith(word) for each in found.open for name in names(each))
    near = [each for each in found.held if each.tool["id"].startswith(word)]
    return near[0] if len(near) == 1 and not gates else None


async def drop(client: "Client", held: Holding, args: argparse.Namespace) -> None:
    """Let a proposal go that nobody was asked about."""
    from accord.core.room.waiting import ToolReject
    from accord.show.output import tell

    session, tool = held.session["id"], held.tool
    said = ToolReject(tool_proposal=tool["id"], rejector=client.id, reason=args.reason)
    await client.post(session, said, ref=tool["id"])
    if args.json:
        tell({"session": session, "gate": None, "action": tool["id"], "state": "rejected"})
    else:
        who, what = line(tool["agent"]), line(tool["tool_name"])
        print(f"{paint.red('Let go.')} {who} may not run {what}, and was told why.")


def has_approved(gate: dict[str, Any], me: str) -> bool:
    """Whether another yes of the same person would change nothing."""
    return me in gate["approvals"] and bool(gate["lacks"])


def pick(word: str, found: list[Waiting], held: Sequence[Holding] = ()) -> Waiting:
    """The one gate meant: its id, its proposal, or the beginning of either.

    Agents choose ids too, so one that is also the beginning of another decides nothing.
    """
    near = [each for each in found if any(name.startswith(word) for name in names(each))]
    same = [each for each in near if each.gate["id"] == word and len(word) >= MADE]
    match same or near:
        case [one]:
            return one
        case []:
            raise nobody_asked(word, held)
        case several:
            ids = ", ".join(line(each.gate["id"]) for each in several)
            detail = f"{line(word)} could be {ids}; write a whole id, or --session"
            raise Refused(Why.MALFORMED, detail)


def nobody_asked(word: str, held: Sequence[Holding]) -> Refused:
    """That there is no such gate; or, of a proposal that is held, why there is none yet."""
    for _, tool in held:
        if tool["id"].startswith(word):
            hold = {name: line(each) for name, each in tool["held"].items()}
            says = f"is held by the decision {hold['batch']}: {hold['why']} {hold['until']}"
            return Refused(Why.WRONG_STATE, f"{line(tool['id'])} {says}")
    return Refused(Why.UNKNOWN, no_gate(line(word)))


def no_gate(word: str) -> str:
    """Where gates are, also those of sessions one is not in."""
    return (
        f"There is no open gate {word} in your sessions; `accord gates` lists them, "
        "`accord session log` says how others ended, "
        "and `accord gates --session ID` joins a session you are not in yet"
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
