"""The table of what a server keeps says what the code does."""

import re
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/explanation/performance.md"
ROW = re.compile(r"^\| .+ \| `([\w.]+)\.([A-Z_]+)` \| (\d+) \|$", re.MULTILINE)


def test_every_bound_of_the_table_is_that_of_the_code() -> None:
    rows = ROW.findall(PAGE.read_text("utf-8"))

    assert len(rows) > 10
    for module, name, said in rows:
        assert getattr(import_module(f"accord.{module}"), name) == int(said), name
