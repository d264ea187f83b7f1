"""List what waits for your approval.

Shows every open gate that you may vote on, in all sessions you are a member of, connected or not:
what would run, who asks, what they claim about it, who has approved, who is still needed and until
when. Then what does not go on by itself, and how gates ended lately. Reading joins nothing.

Examples:
  accord gates
  accord gates --watch
  accord gates --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --full
  accord gates --json
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from accord.cli import connection
from accord.show import style
from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.cli.gates.voting import Card, Concerns

MAX_ENDED_SHOWN = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --session, --watch, --full and the connection flags."""
    add = parser.add_argument
    add("--session", help="only this session (default: all your sessions)")
    add("--watch", action="store_true", help="keep printing what changes; Ctrl-C stops")
    add("--full", action="store_true", help="show long arguments uncut")
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the gates as cards or JSON."""
    import asyncio

    from accord.cli.gates.watch import watch

    asyncio.run(watch(args) if args.watch else show(args))
    return 0


async def show(args: argparse.Namespace) -> None:
    """Print what concerns the caller now."""
    from accord.cli.gates.voting import read_concerns
    from accord.show.output import print_json

    found = await read_concerns(connection.client_for(args), args.session)
    if args.json:
        print_json(concerns_as_json(found))
    else:
        print("\n".join(render_concerns(found, full=args.full)))


def concerns_as_json(found: "Concerns") -> dict[str, Any]:
    """The concerns for programs, with the names that `GET /home` has."""
    return {
        "gates": found.gates,
        "stalls": found.stalls,
        "ended_gates": found.ended,
        "has_more": found.has_more,
    }


def render_concerns(found: "Concerns", *, full: bool = False) -> Iterator[str]:
    """A card for each gate, how to vote, what is held, and how gates ended lately."""
    from accord.show.gate_card import render_gate
    from accord.show.stalls import render_stall

    for gate in found.gates:
        yield from (*render_gate(gate, session_label(gate), full=full), "")
    yield from how_to_answer(found.gates) if found.gates else no_gates(found)
    yield from [""] if found.stalls else []
    for stall in found.stalls:
        yield from render_stall(stall, session_label(stall))
    if found.ended:
        yield from ("", *ended_lines(found.ended[:MAX_ENDED_SHOWN]))
    if found.has_more:
        yield from ("", style.yellow("There is more than fits; name a session with --session"))


def session_label(card: "Card") -> str:
    """The session's name, or its id."""
    return one_line(card["session_name"]) or one_line(card["session"])


def ended_lines(ended: Sequence["Card"]) -> Iterator[str]:
    """One line for each gate that ended."""
    from accord.show.gate_card import describe_ended
    from accord.show.text import wrap

    yield "Ended lately"
    for gate in ended:
        yield from wrap(f"{describe_ended(gate)}, in {session_label(gate)}", "  ")


def how_to_answer(gates: list["Card"]) -> Iterator[str]:
    """The commands for the first gate that still waits for the caller's vote."""
    from accord.cli.gates.voting import still_needed

    opened = f"{plural(len(gates), 'gate')} open."
    waiting = [gate for gate in gates if gate["may_approve"] and gate["my_vote"] is None]
    if waiting:
        gate = one_line(waiting[0]["id"])
        yield from (f"{opened} To vote:", f"  accord approve {gate}")
        yield f'  accord reject {gate} --reason "WHY"'
    elif approved := [gate for gate in gates if gate["my_vote"] is not None]:
        missing = still_needed(approved[0]).replace("It still", "it still")
        yield f"{opened} You have approved; {missing}."
    else:
        yield f"{opened} You cannot approve it, but you can end it:"
        yield f'  accord reject {one_line(gates[0]["id"])} --reason "WHY"'


def no_gates(found: "Concerns") -> Iterator[str]:
    """That no gate is open for the caller, and whether there are any for others."""
    yield style.green("Nothing waits for your approval.")
    if found.other_gates:
        others = plural(found.other_gates, "gate")
        yield f"{others} in your sessions can only be decided by others; `accord session show`"
