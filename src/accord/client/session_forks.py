"""Forks of a session, and merging them back."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from accord.client.connection.outbox import AcceptedMessage
from accord.client.session_base import SessionBase
from accord.core.kernel.ids import MAIN_FORK
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.forking.merge_approval import HEAD_KEY
from accord.core.room.forking.merges import MergeExecute, MergePropose


class ForkMethods(SessionBase):
    """The methods of a session for forks and merges."""

    async def fork(
        self,
        name: str,
        participants: Iterable[str] = (),
        *,
        from_point: str | None = None,
        copy_context: bool = True,
        reason: str = "",
    ) -> str:
        """Create a fork with these members at a message, by default the latest one.

        Returns the fork's id; `within(id)` sends to it.
        """
        body = ForkCreate(
            name=name,
            from_point=from_point or self._link.latest_id(self.fork_id),
            reason=reason,
            participants=tuple(participants),
            copy_context=copy_context,
        )
        accepted = await self.send(body)
        return accepted.echo.fork or "" if accepted.echo else ""

    async def switch(self, fork: str | None) -> AcceptedMessage:
        """Move to a fork; None is the trunk. An admin may enter any fork."""
        return await self.send(ForkSwitch(fork or MAIN_FORK))

    async def propose_merge(
        self,
        fork: str,
        summary: str,
        *,
        into: str | None = None,
        strategy: MergeStrategy
        | Literal["replace", "append", "interleave", "manual"] = MergeStrategy.APPEND,
        head: str | None = None,
    ) -> str:
        """Propose to merge a fork; returns the proposal's id.

        An agent's proposal, and one with the strategy `replace`, needs approval first. Give the
        commit on the fork's branch as `head`, in full: the gate shows it, the approval covers what
        merging that commit changes, and a later commit on the branch voids it.
        """
        shown = {HEAD_KEY: head} if head else None
        where = into or MAIN_FORK
        body = MergePropose(fork, where, MergeStrategy(strategy), summary, shown)
        return (await self.send(body)).id

    async def execute_merge(
        self,
        proposal: str,
        *,
        use_source: Iterable[str] = (),
        use_target: Iterable[str] = (),
        custom: Mapping[str, str | dict[str, Any]] | None = None,
    ) -> AcceptedMessage:
        """Execute a proposed merge, with a resolution for each key that changed on both sides.

        Raises ServerRefused; `details["conflicts"]` lists the keys without a resolution.
        """
        resolutions = build_resolutions(use_source, use_target, custom or {})
        return await self.send(MergeExecute(proposal, resolutions or None), proposal)


def build_resolutions(
    use_source: Iterable[str],
    use_target: Iterable[str],
    custom: Mapping[str, str | dict[str, Any]],
) -> tuple[MergeResolution, ...]:
    """One resolution for each conflicting key."""
    return (
        *(MergeResolution(key, "use_source") for key in use_source),
        *(MergeResolution(key, "use_target") for key in use_target),
        *(MergeResolution(key, "custom", value) for key, value in custom.items()),
    )
