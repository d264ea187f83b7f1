"""Opening a store by its URL."""

import pytest

from accord.engine.ports import StoreError
from accord.stores import OPENERS, open_log


@pytest.mark.parametrize("url", ["oracle:db", "accord.db", "", "MEMORY:"])
async def test_unknown_store_error_lists_the_known_ones(url: str) -> None:
    with pytest.raises(StoreError) as told:
        await open_log(url)

    assert all(f"{scheme}:" in str(told.value) for scheme in OPENERS)


async def test_sqlite_url_requires_a_path() -> None:
    with pytest.raises(StoreError, match="path of a file"):
        await open_log("sqlite:")


async def test_unknown_durability_is_refused() -> None:
    with pytest.raises(StoreError, match="full, normal"):
        await open_log("sqlite:accord.db", durability="maybe")
