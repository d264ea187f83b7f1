"""Writes docs/conformance.md from the manifest in tests/spec; `--check` only compares."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.spec.manifest import Clause, Manifest, Specification, load
from tests.spec.proofs import Proofs, proofs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "conformance.md"

INTRODUCTION = """\
# What Accord conforms to

Accord answers to five specifications. This page lists every clause of them, and every ruling that
was needed where they are silent or disagree, with the tests that prove it in this version.

- **Proven**: at least one test that runs in every build shows that the clause holds.
- **In part**: what exists of the clause is proven; the row says what completes it.
- **Later**: the clause waits for a part of Accord that is still to come.
- Levels: MUST, SHOULD and MAY as in RFC 2119; FACT is a definition, default or example; RULING is
  an answer of ours.

This page is generated from `tests/spec` by `python tools/conformance.py`; a test keeps it current.
"""


def render(manifest: Manifest, proven: Proofs) -> str:
    """The whole page, the same text for the same manifest and tests."""
    sections = [
        INTRODUCTION,
        "\n".join(_summary(manifest, proven)),
        "\n".join(_parts(manifest)),
        *("\n".join(_specification(each, proven)) for each in manifest.specifications),
    ]
    return "\n".join(sections)


def _summary(manifest: Manifest, proven: Proofs) -> Iterator[str]:
    yield "## Summary\n"
    yield from _head("Specification", "Clauses", "Proven", "In part", "Not proven", "Later, with")
    for each in manifest.specifications:
        link = f"[{each.key}](#{_anchor(_heading(each))})"
        yield _row(link, *_figures(each.clauses, proven))
    yield _row("**All**", *_figures(manifest.clauses, proven))
    yield ""


def _figures(clauses: Iterable[Clause], proven: Proofs) -> Iterator[str]:
    clauses = list(clauses)
    now = [each for each in clauses if not each.part]
    shown = [each for each in now if each.id in proven]
    whole = [each for each in shown if not each.rest]
    yield str(len(clauses))
    yield str(len(whole))
    yield str(len(shown) - len(whole))
    yield str(len(now) - len(shown))
    later = Counter(each.part for each in clauses if each.part)
    yield ", ".join(f"{part} {later[part]}" for part in sorted(later))


def _parts(manifest: Manifest) -> Iterator[str]:
    whole = Counter(each.part for each in manifest.clauses)
    rest = Counter(each.rest for each in manifest.clauses)
    yield "## Parts\n"
    yield from _head("Part", "What it is", "Clauses it brings", "Clauses it completes")
    for each in manifest.parts.values():
        figures = ("here", "") if each.delivered else (str(whole[each.key]), str(rest[each.key]))
        yield _row(f"**{each.key}**", _cell(each.sentence), *figures)
    yield ""


def _specification(specification: Specification, proven: Proofs) -> Iterator[str]:
    yield f"## {_heading(specification)}\n"
    yield from _head("Id", "Level", "Clause", "Proven by")
    for each in specification.clauses:
        yield _row(each.id, each.level, _cell(each.sentence), _status(each, proven))
    yield ""


def _status(clause: Clause, proven: Proofs) -> str:
    if clause.part:
        return _later(clause)
    tests = [_link(each) for each in proven.get(clause.id, [])] or ["**not proven**"]
    rest = [f"the rest {_later(clause)}"] if clause.rest else []
    return "<br>".join(tests + rest)


def _later(clause: Clause) -> str:
    reason = f": {_cell(clause.reason)}" if clause.reason else ""
    return f"later, with **{clause.awaits}**{reason}"


def _link(node_id: str) -> str:
    path, _, name = node_id.partition("::")
    return f"[`{name or Path(path).name}`](../{path})"


def _heading(specification: Specification) -> str:
    return f"{specification.key}: {specification.title}"


def _anchor(heading: str) -> str:
    """The anchor that Markdown renderers give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """The text as it is in a table: code untouched, nothing taken for markup or a column."""
    plain_and_code = text.replace("|", r"\|").split("`")
    plain_and_code[::2] = (
        plain.replace("<", "&lt;").replace("*", r"\*") for plain in plain_and_code[::2]
    )
    return "`".join(plain_and_code)


def main() -> int:
    """Write the page, or say with exit code 1 that it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    text = render(load(), proofs())
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/conformance.md is out of date: run python tools/conformance.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
