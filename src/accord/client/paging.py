"""Reads a list page by page."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar


class Page(Protocol):
    """A part of a list, and whether more follows."""

    @property
    def has_more(self) -> bool: ...


PageType = TypeVar("PageType", bound=Page)
Cursor = TypeVar("Cursor")


async def read_pages(
    read: Callable[[Cursor], Awaitable[PageType]],
    after: Cursor,
    end_of: Callable[[PageType], Cursor | None],
) -> AsyncIterator[PageType]:
    """All pages behind `after`; `end_of` tells where a page ends, and None of an empty one.

    A server that says there is more without going on is not asked forever.
    """
    while True:
        page = await read(after)
        yield page
        end = end_of(page)
        if not page.has_more or end is None or end == after:
            return
        after = end
