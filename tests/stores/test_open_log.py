"""A URL names the store."""

import pytest

from accord.engine.ports import StoreError
from accord.stores import OPENERS, open_log


@pytest.mark.parametrize("url", ["oracle:db", "accord.db", "", "MEMORY:"])
async def test_an_unknown_store_is_answered_with_the_known_ones(url: str) -> None:
    with pytest.raises(StoreError) as told:
        await open_log(url)

    assert all(f"{scheme}:" in str(told.value) for scheme in OPENERS)


async def test_a_file_needs_a_name() -> None:
    with pytest.raises(StoreError, match="path of a file"):
        await open_log("sqlite:")


async def test_durability_is_one_of_two_words() -> None:
    with pytest.raises(StoreError, match="full, normal"):
        await open_log("sqlite:accord.db", durability="maybe")
