"""What the kernel is for, and where it is from."""

from pathlib import Path

import pytest

from accord.core.dialects import papvp
from accord.core.docket.rendering import snapshot_writer
from tests.helpers.docket.batch_text import (
    THIN_PLAN,
    item,
    run_batch,
    run_next,
    single_item,
    valid_judgement,
)
from tests.spec import proves

ROOT = Path(__file__).parents[3]
PAGE = " ".join((ROOT / "docs" / "explanation" / "docket.md").read_text("utf-8").split())


@proves("PA-LAYER-2")
def test_the_page_says_which_texts_the_kernel_follows_and_none_of_them_is_here() -> None:
    texts = ("PA_PVP_full_v9.8.0_canonical.txt", "QUICKSTART.md")
    for name in (*texts, "examples", "glossary", "CC BY-SA 4.0", "XxYouDeaDPunKxX"):
        assert name in PAGE, name

    mine = [each.name for part in ("src", "docs") for each in (ROOT / part).rglob("*")]
    assert not set(texts) & set(mine)


@proves("PA-USE-1")
def test_the_page_says_what_it_is_for_and_what_not() -> None:
    assert "decisions with consequences and real trade-offs" in PAGE
    assert "no help for brainstorming" in PAGE


@proves("PA-USE-1")
@pytest.mark.parametrize("text", ["What if we wrote it in Rust?", "- a\n- b", "<<<PLAN>>>\nhm"])
def test_thinking_aloud_is_not_decided(text: str) -> None:
    answer = papvp.respond(text)

    assert not answer.is_valid
    assert "OutputValidity: INVALID\nInvalidReason: OTHER\n" in answer.text
    assert "[ITEM " not in answer.text


@proves("PA-USE-1")
def test_an_idea_that_nobody_weighs_is_parked_and_a_vague_one_is_cut() -> None:
    unweighed = single_item(run_batch(item("A")))
    vague = run_batch(item("A", valid_judgement("A"), plan=THIN_PLAN))
    again = single_item(run_next(vague, item("A", valid_judgement("A"), plan=THIN_PLAN)))

    assert (unweighed.state, unweighed.trigger) == ("STANDBY", "EXTERNAL_DATA_REQUIRED")
    assert single_item(vague).fail_fast_count == 1
    assert (again.state, again.verdict, again.trigger) == ("DISCARDED", "DISCARD", "FAIL_FAST_CUT")
    assert "[NEXT]" not in snapshot_writer.render_block(
        run_next(vague, item("A", valid_judgement("A"), plan=THIN_PLAN))
    )
