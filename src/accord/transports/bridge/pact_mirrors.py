"""The port through which the bridge reaches the mirrors of pacts."""

from collections.abc import Sequence
from typing import Protocol

from accord.core.provenance.commit_links import Repo
from accord.transports.bridge import actions


class PactMirrors(Protocol):
    """Mirrors the pacts of repositories."""

    def check_directory(self, repo: str, directory: str) -> None:
        """Refuse a directory that cannot hold a pact."""
        ...

    async def sync_now(self, repo: str, directory: str) -> actions.ActionResponse:
        """Synchronize the log with the files now, and report on this directory."""
        ...

    async def guard_merges(self, repo: Repo, session: str) -> None:
        """Before a session is bound, make its merges follow the pact's rules."""
        ...

    async def sync_briefly(self, repo: Repo) -> bool:
        """Report the pact's state to the bound sessions, if that is quick; whether it was done."""
        ...

    async def ledger_statuses(self, repo: Repo) -> Sequence[actions.ActionResponse]:
        """The state of each directory."""
        ...

    async def removable_directories(self, repo: Repo) -> Sequence[str]:
        """Directories that no longer exist and had nothing the others lack."""
        ...

    async def check_removable(self, repo: Repo, directory: str) -> None:
        """Refuse to remove a directory that a session depends on."""
        ...

    async def release_session(self, repo: str, session: str) -> None:
        """The session is no longer bound to the repository."""
        ...
