"""Which tests say that they prove which clauses, read from the source without running it."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

# A test that does not run, or may fail, proves nothing.
IDLE = frozenset({"skip", "xfail"})

Proofs = dict[str, list[str]]
Mark = tuple[str, ast.expr]


def proofs(folder: Path = TESTS) -> Proofs:
    """For each id the node ids of the tests that name it, in order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file in sorted(folder.rglob("test_*.py")):
        name = file.relative_to(folder.parent).as_posix()
        for node_id, mark in _marks(_parse(file), name):
            for clause_id in _ids(mark, name):
                found[clause_id].add(node_id)
    return {clause_id: sorted(found[clause_id]) for clause_id in sorted(found)}


def _parse(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file)).body


def _marks(body: list[ast.stmt], prefix: str) -> Iterator[Mark]:
    """Each mark in a module or class, with the node that it is about."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield from _of_all(body, prefix, [value])
            case ast.ClassDef(name=name) if name.startswith("Test"):
                yield from _of_all(node.body, f"{prefix}::{name}", node.decorator_list)
                if not _idle(node.decorator_list):
                    yield from _marks(node.body, f"{prefix}::{name}")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("test") and not _idle(node.decorator_list):
                    yield from ((f"{prefix}::{name}", mark) for mark in node.decorator_list)
            case _:
                pass


def _of_all(body: list[ast.stmt], node_id: str, marks: list[ast.expr]) -> Iterator[Mark]:
    """Marks of a whole class or module, if there is a test in it at all."""
    if any(_is_test(node) for node in body) and not _idle(marks):
        yield from ((node_id, mark) for mark in marks)


def _is_test(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name.startswith(("test", "Test"))
        # A state machine of hypothesis becomes a test by `TestRooms = Rooms.TestCase`.
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("Test")
        case _:
            return False


def _idle(marks: Iterable[ast.expr]) -> bool:
    return any(_name(mark) in IDLE for mark in _flat(marks))


def _ids(mark: ast.expr, where: str) -> Iterator[str]:
    for each in _flat([mark]):
        if isinstance(each, ast.Call) and _name(each) == "proves":
            yield from (_text(argument, where) for argument in each.args)


def _text(argument: ast.expr, where: str) -> str:
    match argument:
        case ast.Constant(value=str(text)):
            return text
        case _:
            raise ValueError(f"{where}:{argument.lineno}: proves() takes ids as plain strings")


def _flat(marks: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for mark in marks:
        match mark:
            case ast.List(elts=several) | ast.Tuple(elts=several):
                yield from _flat(several)
            case _:
                yield mark


def _name(mark: ast.expr) -> str:
    """The last word of `proves(…)`, `spec.proves(…)` or `pytest.mark.skip`."""
    match mark:
        case ast.Call(func=func):
            return _name(func)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""
