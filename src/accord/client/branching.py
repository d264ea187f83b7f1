"""Going one's own way for a while, and coming back."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from accord.core.kernel.ids import MAIN
from accord.core.room.conflicts import Resolution
from accord.core.room.forks import ForkCreate, ForkSwitch
from accord.core.room.merges import MergeExecute, MergePropose
from accord.core.room.state import Strategy

from .outbox import Accepted
from .voice import Voice


class Branching(Voice):
    """Forks and merges."""

    async def fork(
        self,
        name: str,
        participants: Iterable[str] = (),
        *,
        from_point: str | None = None,
        copy_context: bool = True,
        reason: str = "",
    ) -> str:
        """Branch off with these at a message, by default the last one here.

        Returns the fork's id; `within(id)` speaks in it.
        """
        body = ForkCreate(
            name=name,
            from_point=from_point or self._attendance.latest(self.fork_id),
            reason=reason,
            participants=tuple(participants),
            copy_context=copy_context,
        )
        accepted = await self.send(body)
        return accepted.echo.fork or "" if accepted.echo else ""

    async def switch(self, fork: str | None) -> Accepted:
        """Tell the room which fork one is in; None is the trunk. An admin may enter any."""
        return await self.send(ForkSwitch(fork or MAIN))

    async def propose_merge(
        self,
        fork: str,
        summary: str,
        *,
        into: str | None = None,
        strategy: Strategy | Literal["replace", "append", "interleave", "manual"] = Strategy.APPEND,
    ) -> str:
        """Say that a fork is ready to come back; returns the proposal's id.

        An agent's proposal, and one to `replace`, waits for approval first.
        """
        return (await self.send(MergePropose(fork, into or MAIN, Strategy(strategy), summary))).id

    async def execute_merge(
        self,
        proposal: str,
        *,
        use_source: Iterable[str] = (),
        use_target: Iterable[str] = (),
        custom: Mapping[str, str | dict[str, Any]] | None = None,
    ) -> Accepted:
        """Do it, with an answer for each key that changed on both sides.

        ServerRefused names those that have none, as `details["conflicts"]`.
        """
        answers = resolutions(use_source, use_target, custom or {})
        return await self.send(MergeExecute(proposal, answers or None), proposal)


def resolutions(
    use_source: Iterable[str],
    use_target: Iterable[str],
    custom: Mapping[str, str | dict[str, Any]],
) -> tuple[Resolution, ...]:
    """How each conflict is settled."""
    return (
        *(Resolution(key, "use_source") for key in use_source),
        *(Resolution(key, "use_target") for key in use_target),
        *(Resolution(key, "custom", value) for key, value in custom.items()),
    )
