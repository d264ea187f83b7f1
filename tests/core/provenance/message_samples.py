"""Drafts and raw texts of commit messages, as many as there are."""

from pathlib import Path

from hypothesis import strategies as st

from accord.core.provenance.commit_message.parser import BodyAlternative
from accord.core.provenance.commit_message.trailer_values import COMMIT_TYPES
from accord.core.provenance.commit_message.trailers import Trailer
from accord.core.provenance.commit_message.writer import MessageDraft

EXAMPLES = {
    each.stem: each.read_text("utf-8")
    for each in sorted((Path(__file__).parent / "examples").glob("*.txt"))
}

WORD = st.text("abcdefghijklmnop\u00e9\u4e2d", min_size=1, max_size=8)
SENTENCE = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
PARAGRAPHS = st.lists(SENTENCE, max_size=3).map("\n\n".join)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=1)
KEYS = st.from_regex(r"\A[A-Za-z][A-Za-z0-9-]{0,12}\Z").filter(
    lambda key: key.lower() not in {"confidence", "pvp-confidence"}
)
VALUES = NAMES.map(str.strip).filter(bool)
TRAILERS = st.builds(Trailer, KEYS, VALUES)
DRAFTS = st.builds(
    MessageDraft,
    type=st.sampled_from(sorted(COMMIT_TYPES)),
    description=SENTENCE,
    scope=st.none() | WORD,
    breaking=st.booleans(),
    ref=st.none() | st.from_regex(r"\A(msg|fork|ses|dec)-[A-Z0-9]{8}\Z"),
    rationale=PARAGRAPHS,
    alternatives=st.lists(st.builds(BodyAlternative, WORD, SENTENCE), max_size=2).map(tuple),
    confidence=st.none() | st.integers(0, 100).map(lambda n: n / 100),
    discussion=PARAGRAPHS,
    trailers=st.lists(TRAILERS, min_size=1, max_size=4).map(tuple),
)

# Lines that git's rules tell apart, put together at random.
LINES = st.sampled_from(
    [
        *("", "", "", " ", "\t", "\r", "# a comment", "#", "---", "--- ", "words", "two words"),
        *("Key: value", "Key:value", "Key : spaced", "Key:", "key-2: x", "a b: c", ": no key"),
        *(
            "-: dash",
            "K\u00e9y: accent",
            " continued",
            "\tcontinued",
            "  Key: inside",
            "\u00a0x: y",
        ),
        *("Signed-off-by: A <a@b>", "Signed-off-by:x", "(cherry picked from commit abc)"),
        *("Conflicts:", "\tpath/a", "Decision-By: human:alice,ai:claude", "PVP-Confidence: 0.90"),
        *("Key: value\r", "Key: \x0bvalue", "Reviewed-by: Jane <j@x>", "https://example.org/a:b"),
        *("# ------------------------ >8 ------------------------", "Key: a,b", "X-1 \t: y  "),
    ]
)
TEXTS = st.builds(
    lambda lines, end: "\n".join(lines) + end,
    st.lists(LINES, max_size=14),
    st.sampled_from(["\n", "", "\n\n"]),
)
