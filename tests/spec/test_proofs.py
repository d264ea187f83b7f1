"""The scan that finds `proves` in the source of tests."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.spec import proves
from tests.spec.proofs import Proofs, proofs


def scan(tmp_path: Path, source: str) -> Proofs:
    folder = tmp_path / "tests" / "core"
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(dedent(source), encoding="utf-8")
    return proofs(tmp_path / "tests")


def test_a_function_proves_each_id_it_names(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        @proves("A-1", "A-2")
        def test_one(): ...

        @spec.proves("A-2")
        async def test_two(): ...
        """,
    )

    one, two = "tests/core/test_it.py::test_one", "tests/core/test_it.py::test_two"
    assert found == {"A-1": [one], "A-2": [one, two]}


def test_classes_and_their_methods_prove(tmp_path: Path) -> None:
    found = scan(
        tmp_path,
        """
        @proves("A-1")
        class TestGate:
            @proves("A-2")
            def test_passes(self): ...
        """,
    )

    gate = "tests/core/test_it.py::TestGate"
    assert found == {"A-1": [gate], "A-2": [f"{gate}::test_passes"]}


@pytest.mark.parametrize("value", ['proves("A-1")', '[pytest.mark.slow, proves("A-1")]'])
def test_a_module_proves_by_its_pytestmark(tmp_path: Path, value: str) -> None:
    found = scan(tmp_path, f"pytestmark = {value}\nTestRooms = Rooms.TestCase\n")

    assert found == {"A-1": ["tests/core/test_it.py"]}


@pytest.mark.parametrize(
    "source",
    [
        '@proves("A-1")\n@pytest.mark.skip(reason="later")\ndef test_it(): ...',
        '@proves("A-1")\n@pytest.mark.xfail\ndef test_it(): ...',
        '@pytest.mark.skip\nclass TestIt:\n    @proves("A-1")\n    def test_it(self): ...',
        '@proves("A-1")\nclass TestNothing: ...',
        '@proves("A-1")\ndef helper(): ...',
        'pytestmark = proves("A-1")',
    ],
)
def test_what_never_runs_proves_nothing(tmp_path: Path, source: str) -> None:
    assert scan(tmp_path, source) == {}


def test_an_id_that_cannot_be_read_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tests/core/test_it\.py:1: proves"):
        scan(tmp_path, "@proves(*IDS)\ndef test_it(): ...")


def test_the_mark_carries_the_ids() -> None:
    assert proves("A-1", "A-2").mark.args == ("A-1", "A-2")
