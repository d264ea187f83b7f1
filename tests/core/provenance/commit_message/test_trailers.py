"""Which lines are trailers; `tests/git` holds the same against git itself."""

import pytest

from accord.core.provenance.commit_message.trailers import trailers_in
from tests.core.provenance.trailer_samples import TOLD
from tests.helpers.measure.cpu_time import measure_cpu
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


def test_a_value_that_is_folded_again_and_again_is_read_in_a_moment() -> None:
    often = 200_000
    text = "x\n\nPVP-Thread: a\n" + " b\n" * often

    (found,) = trailers_in(text)

    assert found.value == "a" + " b" * often
    assert measure_cpu(lambda: trailers_in(text)) < 2
