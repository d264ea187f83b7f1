"""Finds a gate among those that concern the caller, and votes on it over HTTP."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from accord.cli import connection
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.show import style
from accord.show.text import describe_missing, one_line

if TYPE_CHECKING:
    from accord.client import Client

ID_LENGTH = 26  # characters of an id that the server made; a complete id is never ambiguous
# Ids of the same second differ in their first eight characters, shorter beginnings do not.
MIN_PREFIX_LENGTH = 8
Card = dict[str, Any]
PASSED = frozenset({"approved", "auto_approved"})


class Concerns(NamedTuple):
    """What concerns the caller: open gates, stalls, and gates that ended lately."""

    gates: list[Card]
    stalls: Sequence[Card] = ()
    ended: Sequence[Card] = ()
    other_gates: int = 0
    has_more: bool = False

    @property
    def held(self) -> list[Card]:
        """Proposals that a decision holds back."""
        return [stall for stall in self.stalls if stall["kind"] == "proposal_held"]

    def in_session(self, session: str | None) -> "Concerns":
        """Those of one session; all of them for None."""
        if session is None:
            return self
        here = [
            [entry for entry in entries if entry["session"] == session]
            for entries in (self.gates, self.stalls, self.ended)
        ]
        return Concerns(here[0], here[1], here[2])


def concerns_in(home: Any) -> Concerns:
    """The parts of a home as JSON."""
    parts = msgspec.to_builtins(home)
    return Concerns(
        gates=parts["gates"],
        stalls=parts["stalls"],
        ended=parts["ended_gates"],
        other_gates=parts["counts"]["other_gates"],
        has_more=parts["has_more"],
    )


async def read_concerns(client: "Client", session: str | None) -> Concerns:
    """What concerns the caller, in one session or in all; reading joins nothing."""
    found = concerns_in(await client.home()).in_session(session)
    if session is not None and not (found.gates or found.stalls):
        await require_session(client, session)
    return await with_arguments(client, found)


async def require_session(client: "Client", session: str) -> None:
    """Refuse a session in which nothing could ever wait for the caller, and name a similar one."""
    from accord.cli.parsing import nearest_match

    standings = {each.id: each.standing for each in await client.sessions()}
    if standings.get(session) == "member":
        return
    if session in standings:
        hint = f"`accord session join {session}` makes you one again"
        raise Refused(Reason.FORBIDDEN, f"You are no longer a member of {session}; {hint}")
    mine = [id for id, standing in standings.items() if standing == "member"]
    near = nearest_match(session, mine)
    hint = f"did you mean {near}?" if near else "`accord session list` shows yours"
    detail = f"You are not a member of a session {one_line(session)}; {hint}"
    raise Refused(Reason.NO_ROOM, detail)


async def with_arguments(client: "Client", found: Concerns) -> Concerns:
    """The gates with the arguments that were too large for the home, read from their session."""
    sessions: dict[str, Any] = {}
    gates: list[Card] = []
    for gate in found.gates:
        action, session = gate["action"], gate["session"]
        if not (action and action["arguments_omitted"]):
            gates.append(gate)
            continue
        if session not in sessions:
            sessions[session] = msgspec.to_builtins(await client.session(session))
        tools = {tool["id"]: tool for tool in sessions[session]["tools"]}
        gates.append({**gate, "action": tools.get(action["id"], action)})
    return found._replace(gates=gates)


async def vote(
    args: argparse.Namespace, ballot: Callable[[str, str], Body], *, rejects: bool = False
) -> None:
    """Find the gate, vote with a single message, and print the outcome."""
    from accord.show.output import print_json

    client = connection.client_for(args)
    found = await read_concerns(client, args.session)
    if rejects and (held := find_held(args.gate, found)):
        await reject_held(client, held, args)
        return
    if rejects and (passed := find_passed(args.gate, found)):
        await take_back(client, passed, args)
        return
    card = find_card(args, found)
    again = not rejects and card["my_vote"] is not None
    if not again:
        await client.post(card["session"], ballot(card["id"], client.id), ref=card["id"])
    now = concerns_in(await client.home())
    still = next((gate for gate in now.gates if gate["id"] == card["id"]), None)
    ended = next((gate for gate in now.ended if gate["id"] == card["id"]), None)
    if args.json:
        print_json(outcome_for_json(card, still, ended, rejected=rejects))
    else:
        print("\n".join(outcome_lines(card, still, ended, rejected=rejects, again=again)))


def find_card(args: argparse.Namespace, found: Concerns) -> Card:
    """The gate to vote on; in a named session also one that the home does not list.

    The server then says why the caller may not vote on it.
    """
    try:
        return find_gate(args.gate, found)
    except Refused as refusal:
        if args.session is None or refusal.reason is not Reason.NOT_FOUND:
            raise
    return {"id": args.gate, "session": args.session, "session_name": "", "my_vote": None}


def find_held(word: str, found: Concerns) -> Card | None:
    """The only held proposal that the word matches, unless it also matches a gate."""
    if len(word) < MIN_PREFIX_LENGTH and not any(held["id"] == word for held in found.held):
        return None
    is_gate = any(name.startswith(word) for gate in found.gates for name in gate_names(gate))
    matches = [held for held in found.held if held["id"].startswith(word)]
    return matches[0] if len(matches) == 1 and not is_gate else None


def find_passed(word: str, found: Concerns) -> Card | None:
    """The only call that the word matches whose gate has passed, unless it matches an open gate.

    Its grant can be taken back until the agent uses it; the server knows whether it has.
    """
    if len(word) < MIN_PREFIX_LENGTH:
        return None
    is_gate = any(name.startswith(word) for gate in found.gates for name in gate_names(gate))
    matches = [
        ended
        for ended in found.ended
        if ended["action_type"] == "tool"
        and ended["outcome"] in PASSED
        and (ended["id"].startswith(word) or ended["action_ref"].startswith(word))
    ]
    return matches[0] if len(matches) == 1 and not is_gate else None


async def take_back(client: "Client", passed: Card, args: argparse.Namespace) -> None:
    """End the unused grant of a call that was approved."""
    from accord.core.room.approval.grants import ToolReject
    from accord.show.gate_card import names_in, person, tool_label
    from accord.show.output import print_json

    session, proposal = passed["session"], passed["action_ref"]
    body = ToolReject(tool_proposal=proposal, rejector=client.id, reason=args.reason)
    await client.post(session, body, ref=proposal, fork=passed["fork"])
    if args.json:
        found = {"session": session, "proposal": proposal, "gate": passed["id"]}
        print_json({**found, "state": "taken_back"})
    else:
        who = person(passed["initiator"], names_in(passed))
        taken = f"{who} may no longer run {tool_label(passed['tool_name'])} and was told why."
        print(f"{style.red('Taken back.')} {taken}")


async def reject_held(client: "Client", held: Card, args: argparse.Namespace) -> None:
    """Reject a proposal that has no gate yet."""
    from accord.core.room.approval.grants import ToolReject
    from accord.show.output import print_json

    session, tool = held["session"], held["proposal"]
    body = ToolReject(tool_proposal=tool["id"], rejector=client.id, reason=args.reason)
    await client.post(session, body, ref=tool["id"])
    if args.json:
        print_json({"session": session, "proposal": tool["id"], "gate": None, "state": "rejected"})
    else:
        who, what = one_line(tool["agent"]), one_line(tool["tool_name"])
        print(f"{style.red('Rejected.')} {who} may not run {what} and was told why.")


def find_gate(word: str, found: Concerns) -> Card:
    """The gate that the word matches: its id, its proposal's id, or the beginning of either.

    Agents choose ids too, so a short id that is also the beginning of another is ambiguous.
    """
    check_prefix(word, found.gates)
    matches = [gate for gate in found.gates if any(n.startswith(word) for n in gate_names(gate))]
    exact = [gate for gate in matches if gate["id"] == word and len(word) >= ID_LENGTH]
    match exact or matches:
        case [one]:
            return one
        case []:
            raise no_such_gate(word, found)
        case several:
            ids = ", ".join(one_line(gate["id"]) for gate in several)
            detail = f"{one_line(word)} could be {ids}; give the complete id, or add --session"
            raise Refused(Reason.MALFORMED, detail)


def check_prefix(word: str, gates: Sequence[Card]) -> None:
    """Refuse a word so short that it could match a gate the caller does not mean.

    An unset shell variable is an empty word, and ids of the same day begin alike.
    """
    if len(word) >= MIN_PREFIX_LENGTH or any(word in gate_names(gate) for gate in gates):
        return
    detail = (
        f"Give the gate's id, or at least its first {MIN_PREFIX_LENGTH} characters; "
        "`accord gates` lists the open gates"
    )
    raise Refused(Reason.MALFORMED, detail)


def no_such_gate(word: str, found: Concerns) -> Refused:
    """How the gate ended; for a held proposal, why it has none yet; or that there is none."""
    from accord.show.gate_card import describe_ended

    for ended in found.ended:
        if ended["id"].startswith(word) or ended["action_ref"].startswith(word):
            return Refused(
                Reason.WRONG_STATE, f"Nothing is left to vote on: {describe_ended(ended)}"
            )
    for held in found.held:
        if held["id"].startswith(word) and (hold := held["proposal"]["held"]):
            parts = {name: one_line(value) for name, value in hold.items()}
            why = f"is held back by the decision {parts['batch']}: {parts['why']} {parts['until']}"
            return Refused(Reason.WRONG_STATE, f"{one_line(held['id'])} {why}")
    return Refused(Reason.NOT_FOUND, no_gate_sentence(one_line(word), found.other_gates))


def no_gate_sentence(word: str, other_gates: int = 0) -> str:
    """Where to find gates, including those of sessions the caller is not in."""
    others = (
        f"; {other_gates} in your sessions are open for others to vote on" if other_gates else ""
    )
    return (
        f"There is no open gate {word} that you may vote on{others}. `accord gates` lists yours, "
        "`accord session log` shows how older ones ended, "
        "and `accord session join ID` makes you a member of another session"
    )


def gate_names(gate: Card) -> tuple[str, str]:
    """The ids by which a gate can be chosen."""
    return gate["id"], gate["request"]["action_ref"]


def outcome_for_json(
    card: Card, still: Card | None, ended: Card | None, *, rejected: bool
) -> dict[str, Any]:
    """The outcome of a vote as JSON; `state` is `open`, or how the gate ended."""
    known = still or card
    by_vote = "rejected" if rejected else "approved"
    state = "open" if still else ended["outcome"] if ended else by_vote
    # The server sends no gate that has ended; its end names those who approved.
    passed = ended if state == "approved" else None
    received = len(passed["by"]) if passed else known.get("approvals_received")
    return {
        "session": card["session"],
        "proposal": known["request"]["action_ref"] if "request" in known else None,
        "gate": card["id"],
        "state": state,
        "approvals_received": received,
        "approvals_required": known.get("approvals_required"),
    }


def outcome_lines(
    card: Card, still: Card | None, ended: Card | None, *, rejected: bool, again: bool
) -> Iterator[str]:
    """The outcome of a vote, and what was voted on."""
    from accord.show.card import Card as CardFrame
    from accord.show.gate_card import FULL_FLAG, MAX_CALL_LINES, place_of
    from accord.show.proposed_call import call_lines

    yield outcome_sentence(card, still, ended, rejected=rejected, again=again)
    frame = CardFrame(style.dim)
    if action := card.get("action"):
        yield from frame.listing(call_lines(action["arguments"]), MAX_CALL_LINES, FULL_FLAG)
    yield from frame.line(place_of(card, card["session_name"] or card["session"]))


def outcome_sentence(
    card: Card, still: Card | None, ended: Card | None, *, rejected: bool, again: bool = False
) -> str:
    """The outcome of a vote in a sentence."""
    from accord.show.gate_card import describe_ended, names_in, person, tool_label

    who = person(card.get("initiator") or "the agent", names_in(card))
    action = card.get("action")
    what = f"run {tool_label(action['tool_name'])}" if action else "go on"
    if rejected and (ended is None or ended["outcome"] == "rejected"):
        return f"{style.red('Rejected.')} {who} may not {what} and was told why."
    if still is not None:
        done = "You have approved this already." if again else "Approved."
        return f"{style.green(done)} {still_needed(still)} before {who} may {what}."
    if ended is None or (ended["outcome"] == "approved" and not again):
        return f"{style.green('Approved')}, and that was enough: {who} may {what} now."
    return f"Your vote was no longer needed: {describe_ended(ended)}."


def still_needed(gate: Card) -> str:
    """Which approvals are still missing, as the beginning of a sentence."""
    missing = describe_missing(gate["lacks"], gate["approvals"]) or "1 more approval"
    plain = gate["request"]["quorum"].get("type") == "any"
    return f"{missing} needed" if plain else f"It still needs {missing}"
