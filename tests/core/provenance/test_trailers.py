"""Which lines are trailers; `tests/git` holds the same against git itself."""

import pytest

from accord.core.provenance.trailers import trailers_in
from tests.core.provenance.told import TOLD
from tests.spec import proves


@proves("GIT-TRAILER-1", "OPEN-71")
@pytest.mark.parametrize(
    ("text", "found"),
    TOLD.items(),
)
def test_only_the_last_paragraph_and_only_if_it_is_made_of_them(
    text: str, found: list[str]
) -> None:
    assert [str(each) for each in trailers_in(text)] == found
