"""Writes the tables of the documentation from the code's own; `--check` only compares.

A page holds prose of its own and, between two marks, tables that are made here:

    <!-- table: errors -->
    <!-- end of table -->
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.spec.manifest import load
from tests.spec.proofs import proofs
from tools import conformance
from tools.reference import (
    bridge,
    commands,
    commits,
    decisions,
    mcp_tools,
    primitives,
    rules,
    server,
    threads,
)
from tools.reference.words import WordsError

ROOT = Path(__file__).resolve().parents[1]
Maker = Callable[[], Iterator[str]]

TABLES: dict[str, Maker] = {
    "bridge": bridge.actions,
    "decision attributes": decisions.attribute_table,
    "decision budgets": decisions.budgets,
    "decision checks": decisions.checks,
    "decision remarks": decisions.remarks,
    "decision rules": decisions.rule_table,
    "decision triggers": decisions.triggers,
    "categories": rules.categories,
    "commit confidence": commits.bands,
    "commit decisions": commits.decision_types,
    "commit trailers": commits.trailers,
    "commit types": commits.types,
    "commands": commands.commands,
    "command overview": commands.overview,
    "environment": server.environment,
    "envelope": primitives.envelope,
    "errors": rules.errors,
    "events": server.events,
    "http": server.routes,
    "limits": server.limits,
    "fixed limits": server.fixed,
    "mcp resources": mcp_tools.resources,
    "mcp tools": mcp_tools.tools,
    "messages by verb": rules.needs,
    "metrics": server.measured,
    "payloads": primitives.payloads,
    "permissions": rules.matrix,
    "primitives": primitives.summary,
    "quorum": rules.quorum,
    "rights": rules.rights,
    "risks": rules.risks,
    "session config": server.session_config,
    "settings": server.settings,
    "shapes": primitives.shapes,
    "storage": server.tables,
    "delivery states": threads.delivery_states,
    "event types": threads.event_types,
    "thread errors": threads.errors,
    "thread fields": threads.method_fields,
    "thread methods": threads.methods,
    "thread statuses": threads.statuses,
    "wake outcomes": threads.wake_outcomes,
}
BLOCK = re.compile(
    r"(?P<begin><!-- table: (?P<name>[a-z ]+) -->\n)(?P<body>.*?)(?P<end><!-- end of table -->\n)",
    re.DOTALL,
)


class PageError(Exception):
    """A page asks for a table that there is not, or a table has no page."""


def fill_tables(text: str) -> str:
    """The page with its tables as the code says now."""
    return BLOCK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    name = found["name"]
    if name not in TABLES:
        raise PageError(f"there is no table {name!r}; there are {', '.join(TABLES)}")
    body = "\n".join(TABLES[name]()).strip("\n")
    return f"{found['begin']}\n{body}\n\n{found['end']}"


def table_names(text: str) -> Iterator[str]:
    """The tables that a page holds."""
    return (found["name"] for found in BLOCK.finditer(text))


def pages(root: Path = ROOT) -> list[Path]:
    """Everything that may hold a table."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def generate_pages(files: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Each page as it should be."""
    homeless = set(TABLES)
    for file in files:
        text = file.read_text("utf-8")
        homeless -= set(table_names(text))
        yield file, conformance_page() if file == conformance.PAGE else fill_tables(text)
    if homeless:
        raise PageError(f"no page holds {', '.join(sorted(homeless))}")


def conformance_page() -> str:
    """What is proven, from the manifest."""
    return conformance.render(load(), proofs())


def main(words: list[str] | None = None) -> int:
    """Write the pages, or say with exit code 1 which of them are out of date."""
    parser = argparse.ArgumentParser(description="Write the generated parts of the documentation.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(words)
    try:
        changed = [
            each for each in generate_pages(pages()) if each[0].read_text("utf-8") != each[1]
        ]
    except (PageError, WordsError) as error:
        print(f"gendocs: {error}", file=sys.stderr)
        return 1
    for file, text in changed:
        name = file.relative_to(ROOT)
        if options.check:
            print(f"{name} is out of date: run make docs", file=sys.stderr)
        else:
            file.write_text(text, "utf-8")
            print(f"wrote {name}")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
