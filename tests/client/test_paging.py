"""A list is read page by page, to its end and no further."""

from typing import NamedTuple

from accord.client.paging import read_pages


class Numbers(NamedTuple):
    """Some numbers of a list."""

    items: tuple[int, ...]
    has_more: bool


async def read_all(pages: dict[int, Numbers]) -> tuple[list[int], list[int]]:
    """The numbers found, and where each page was asked for."""
    asked: list[int] = []

    async def page_after(number: int) -> Numbers:
        asked.append(number)
        return pages[number]

    found = read_pages(page_after, 0, lambda page: page.items[-1] if page.items else None)
    return [item async for page in found for item in page.items], asked


async def test_each_page_is_asked_for_once_behind_the_last_item() -> None:
    pages = {0: Numbers((1, 2), True), 2: Numbers((3,), True), 3: Numbers((4,), False)}

    assert await read_all(pages) == ([1, 2, 3, 4], [0, 2, 3])


async def test_empty_page_ends_the_list() -> None:
    assert await read_all({0: Numbers((1,), True), 1: Numbers((), True)}) == ([1], [0, 1])


async def test_page_that_does_not_go_on_ends_the_list() -> None:
    assert await read_all({0: Numbers((1,), True), 1: Numbers((1,), True)}) == ([1, 1], [0, 1])
