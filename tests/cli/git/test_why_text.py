"""What `accord why` prints about people."""

from accord.cli.git.why_text import named
from accord.core.provenance.decision_commit import DecisionCommit
from accord.show.columns import column_width

MADE = DecisionCommit(
    id="d",
    pvp_session="s",
    names={"human:bob": "Bob Ash", "agent:x": "human:alice\n\x1b[2J" + "漢" * 100},
)


def test_a_name_stands_beside_its_id() -> None:
    assert named("human:bob", MADE) == "human:bob (Bob Ash)"
    assert named("human:alice", MADE) == "human:alice"


def test_a_name_never_stands_in_place_of_an_id_and_is_cut() -> None:
    shown = named("agent:x", MADE)

    assert shown.startswith("agent:x (human:alice \\x1b[2J")
    assert shown.isprintable()
    assert column_width(shown) <= 60
