"""Both directions: every clause has its proof or its part, every proof has its clause."""

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.spec import proves
from tests.spec.manifest import COUNTS, RULINGS, Clause, Level, Manifest, load
from tests.spec.proofs import Proofs, proofs
from tools.conformance import PAGE, render


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return load()


@pytest.fixture(scope="module")
def proven() -> Proofs:
    return proofs()


def test_every_clause_is_proven_or_waits_for_a_named_part(
    manifest: Manifest, proven: Proofs
) -> None:
    silent = [each for each in manifest.clauses if each.id not in proven and not each.part]

    assert not silent, told("have neither a proving test nor a part", silent)


def test_every_id_that_a_test_names_is_a_clause(manifest: Manifest, proven: Proofs) -> None:
    known = {each.id for each in manifest.clauses}
    strange = [f"{name}  in {', '.join(proven[name])}" for name in proven if name not in known]

    assert not strange, lines("ids are proven but are no clauses", strange)


def test_a_proven_clause_no_longer_waits_for_a_part(manifest: Manifest, proven: Proofs) -> None:
    behind = [each for each in manifest.clauses if each.id in proven and each.part]

    assert not behind, told("are proven: drop `part`, or turn it into `rest`", behind)


def test_no_clause_is_missing(manifest: Manifest) -> None:
    found = {each.key: len(each.clauses) for each in manifest.specifications}

    assert found == COUNTS
    assert sum(found[key] for key in found if key not in RULINGS) == 564


def test_an_id_names_one_clause_of_its_own_specification(manifest: Manifest) -> None:
    seen = Counter(each.id for each in manifest.clauses)
    repeated = [name for name, count in seen.items() if count > 1]
    strayed = [
        each.id
        for specification in manifest.specifications
        for each in specification.clauses
        if not each.id.startswith(f"{specification.key}-")
    ]

    assert not repeated, lines("ids name more than one clause", repeated)
    assert not strayed, lines("ids are in another specification's file", strayed)


@proves("PVP-2-1")
def test_requirements_have_words_of_rfc_2119_and_rulings_are_ours(manifest: Manifest) -> None:
    wrong = [
        each
        for specification in manifest.specifications
        for each in specification.clauses
        if (each.level is Level.RULING) != (specification.key in RULINGS)
    ]

    assert not wrong, told("have a level of the other kind", wrong)


def test_a_clause_waits_only_for_a_known_part_that_is_still_to_come(manifest: Manifest) -> None:
    coming = {each.key for each in manifest.parts.values() if not each.delivered}
    wrong = [each for each in manifest.clauses if each.awaits and each.awaits not in coming]

    assert not wrong, told("wait for a part that is unknown or delivered", wrong)


def test_a_clause_waits_once_and_gives_a_reason_only_for_waiting(manifest: Manifest) -> None:
    twice = [each for each in manifest.clauses if each.part and each.rest]
    idle = [each for each in manifest.clauses if each.reason and not each.awaits]
    unexplained = [each for each in manifest.clauses if each.rest and not each.reason]

    assert not twice, told("have both `part` and `rest`", twice)
    assert not idle, told("have a reason and wait for nothing", idle)
    assert not unexplained, told("have a `rest` without a reason", unexplained)


def test_the_conformance_page_is_up_to_date(manifest: Manifest, proven: Proofs) -> None:
    current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == render(manifest, proven)

    assert current, f"docs/{PAGE.name} is out of date: run python tools/conformance.py"


def told(problem: str, clauses: Iterable[Clause]) -> str:
    return lines(f"clauses {problem}", [f"{each.id:<14} {each.sentence}" for each in clauses])


def lines(problem: str, found: list[str]) -> str:
    return "\n  ".join([f"{len(found)} {problem}:", *found])
