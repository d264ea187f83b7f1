"""`accord gates --watch`: prints gates as they open, are voted on, and end."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from accord.cli import connection
from accord.cli.follow_stream import keep_following
from accord.cli.gates.gates import concerns_as_json, how_to_answer, session_label
from accord.cli.gates.voting import Card, Concerns, concerns_in, require_session, with_arguments
from accord.show import style
from accord.show.gate_card import describe_ended, needed_approvals, render_gate
from accord.show.output import print_json

NOTHING_YET = "Nothing waits for your approval; new gates appear here. Ctrl-C stops."


async def watch(args: argparse.Namespace) -> None:
    """Follow `/home/events`; reconnects after each loss."""
    client = connection.client_for(args)
    if args.session is not None:
        await require_session(client, args.session)
    printer = WatchPrinter(full=args.full, raw=args.json)

    async def follow_home(on_heard: Callable[[], None]) -> None:
        async for home in client.home_events():
            on_heard()
            found = await with_arguments(client, concerns_in(home).in_session(args.session))
            printer.print_changes(found, getattr(home, "session", None))

    await keep_following(client.url, follow_home)


class WatchPrinter:
    """Prints each gate once when it opens, and then what changes about it."""

    def __init__(self, *, full: bool, raw: bool) -> None:
        self._full = full
        self._raw = raw
        self._open: dict[str, Card] = {}
        self._printed = False

    def print_changes(self, found: Concerns, session: str | None) -> None:
        """Print the differences to what was shown; `session` if the rest did not change."""
        if self._raw:
            print_json({"session": session, **concerns_as_json(found)})
            return
        lines = list(self.changes(found, session))
        if not self._printed and not lines:
            lines = [style.green(NOTHING_YET)]
        self._printed = True
        if lines:
            print("\n".join(lines), flush=True)

    def changes(self, found: Concerns, session: str | None) -> Iterator[str]:
        """The lines about gates that opened, changed or ended."""
        before = {id: g for id, g in self._open.items() if session in (None, g["session"])}
        now = {gate["id"]: gate for gate in found.gates}
        ended = {gate["id"]: gate for gate in found.ended}
        for id in before.keys() - now.keys():
            del self._open[id]
            yield from (f"{describe_end(before[id], ended.get(id))}", "")
        for id, gate in now.items():
            self._open[id] = gate
            if id not in before:
                yield from (*render_gate(gate, session_label(gate), full=self._full), "")
                yield from (*how_to_answer([gate]), "")
            elif before[id]["approvals"] != gate["approvals"]:
                yield from (f"{gate['id']}: needs {needed_approvals(gate)}", "")


def describe_end(gate: Card, ended: dict[str, Any] | None) -> str:
    """How a gate ended that was shown before."""
    how = describe_ended(ended) if ended else "it no longer waits for you"
    return f"{gate['id']}: {how}, in {session_label(gate)}"
