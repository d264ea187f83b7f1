"""The conformance page says what is proven, what is not and what comes later."""

from tests.spec.manifest import Clause, Level, Manifest, Part, Specification
from tools.conformance import render

TEST = "tests/core/test_it.py::TestGate::test_it_waits"


def page(*clauses: Clause) -> str:
    parts = {"base": Part("base", "The base.", delivered=True), "git": Part("git", "Git.")}
    manifest = Manifest((Specification("A", "A protocol", clauses),), parts)
    return render(manifest, {"A-1": [TEST]})


def clause(name: str, *, sentence: str = "It waits.", **awaits: str) -> Clause:
    return Clause(name, Level.MUST, sentence, **awaits)


def test_a_proven_clause_links_to_its_test() -> None:
    link = "[`TestGate::test_it_waits`](../tests/core/test_it.py)"

    assert f"| A-1 | MUST | It waits. | {link} |" in page(clause("A-1"))


def test_a_clause_that_waits_names_the_part_and_the_reason() -> None:
    row = "| A-2 | MUST | It waits. | later, with **git**: Not yet. |"

    assert row in page(clause("A-2", part="git", reason="Not yet."))


def test_a_clause_whose_rest_waits_shows_both() -> None:
    shown = page(clause("A-1", rest="git", reason="Half."))

    assert "(../tests/core/test_it.py)<br>the rest later, with **git**: Half. |" in shown


def test_a_clause_without_proof_is_not_passed_over() -> None:
    assert "| A-3 | MUST | It waits. | **not proven** |" in page(clause("A-3"))


def test_the_summary_counts_each_kind() -> None:
    shown = page(
        clause("A-1", rest="git", reason="Half."), clause("A-2", part="git"), clause("A-3")
    )

    assert "| [A](#a-a-protocol) | 3 | 0 | 1 | 1 | git 1 |" in shown


def test_a_sentence_survives_the_table() -> None:
    shown = page(clause("A-1", sentence="Partial<X> is `a|b` or `<c>` in x.*"))

    assert r"| Partial&lt;X> is `a\|b` or `<c>` in x.\* |" in shown
