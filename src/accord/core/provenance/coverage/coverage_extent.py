"""What approvals cover of a commit.

Uses the standard library only, because hooks check commits that were rewritten.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

WHOLE, PART, NONE = "whole", "part", "none"


class CoveredPaths(NamedTuple):
    """The paths that one approver's approval of one proposal covers.

    `together`: only with what others approved; this approver did not see all of their content.
    """

    approver: str
    proposal: str
    paths: tuple[str, ...]
    together: bool = False


class Coverage(NamedTuple):
    """What approvals cover of a commit, and who approved all of it.

    `covers` is `whole` if every changed path is covered, by any approvers, `part` or `none`.
    """

    covers: str = NONE
    entries: tuple[CoveredPaths, ...] = ()
    approvers: tuple[str, ...] = ()

    def entries_of(self, path: str) -> tuple[CoveredPaths, ...]:
        """The approvals that cover a path."""
        return tuple(entry for entry in self.entries if path in entry.paths)


# An approver and a proposal.
Approval = tuple[str, str]
ProposalsByPath = Mapping[str, tuple[str, ...]]
ApprovalsByPath = Mapping[str, tuple[Approval, ...]]


def combine_coverage(
    paths: Iterable[str], alone: Mapping[str, ProposalsByPath], mixed: ApprovalsByPath
) -> Coverage:
    """The coverage of a commit that changes these paths.

    `alone` has the paths that follow from what one approver approved; `mixed` those that follow
    from what all of them approved.
    """
    everything = frozenset(paths)
    covered_alone = frozenset(path for covered in alone.values() for path in covered)
    together = {path: found for path, found in mixed.items() if path not in covered_alone}
    covered = covered_alone | together.keys()
    state = NONE if not covered else WHOLE if covered >= everything else PART
    entries = (*_entries_alone(alone), *_entries_together(together))
    whole = (name for name, found in alone.items() if everything and everything <= found.keys())
    return Coverage(state, entries, tuple(sorted(whole)))


def _entries_alone(alone: Mapping[str, ProposalsByPath]) -> Iterator[CoveredPaths]:
    pairs = {
        approver: {
            path: tuple((approver, each) for each in proposals) for path, proposals in found.items()
        }
        for approver, found in alone.items()
    }
    for approver in sorted(pairs):
        yield from _entries(pairs[approver])


def _entries_together(together: ApprovalsByPath) -> Iterator[CoveredPaths]:
    yield from (entry._replace(together=True) for entry in _entries(together))


def _entries(approvals: ApprovalsByPath) -> Iterator[CoveredPaths]:
    paths: dict[Approval, list[str]] = {}
    for path, found in approvals.items():
        for approval in found:
            paths.setdefault(approval, []).append(path)
    for (approver, proposal), found_paths in paths.items():
        yield CoveredPaths(approver, proposal, tuple(sorted(found_paths)))
