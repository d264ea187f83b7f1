"""Commit messages: types, trailers and words of confidence, from their tables."""

from collections.abc import Iterator

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailers import TRAILER_KEYS
from tools.reference.markdown import code, codes, table


def types() -> Iterator[str]:
    """The nine types of a commit, and what each usually decides."""
    rows = [
        (code(name), what, code(trailer_values.default_decision_type(name) or ""))
        for name, what in trailer_values.COMMIT_TYPES.items()
    ]
    yield from table(("Type", "For", "Usual decision"), rows)


def trailers() -> Iterator[str]:
    """Every key, in the order they are written."""
    yield from table(("Key", "Says"), [(code(key), what) for key, what in TRAILER_KEYS.items()])


def decision_types() -> Iterator[str]:
    """The words of the record with those of the trailers."""
    rows = [
        (code(word), code(trailer_values.to_record_type(word)), _written(word))
        for word in trailer_values.DECISION_TYPES
    ]
    yield from table(("Decision", "In the record", "In the trailers"), rows)


def _written(word: str) -> str:
    trailer, exact = trailer_values.to_trailer_types(word)
    return code(trailer) if exact is None else f"{code(trailer)} and `PVP-Type: {exact}`"


def bands() -> Iterator[str]:
    """Words for numbers."""
    rows = [(code(word), f"{least:.2f}") for least, word in trailer_values.BAND_MINIMUMS]
    yield from table(("Word", "From"), rows)
    yield ""
    words = codes([word.value for _, word in trailer_values.GRADE_MINIMUMS])
    yield f"The decision kernel says {words} instead,"
    yield "from " + ", ".join(f"{least:.2f}" for least, _ in trailer_values.GRADE_MINIMUMS) + "."
