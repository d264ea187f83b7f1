"""Who may import whom, and what the core may not touch."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

CONTEXTS = frozenset(
    {
        "accord.core.room",
        "accord.core.attention",
        "accord.core.work",
        "accord.core.docket",
        "accord.core.provenance",
        "accord.core.people",
    }
)
KERNEL = frozenset({"accord.core.kernel"})
FACTS = KERNEL | CONTEXTS
CORE = FACTS | {"accord.core.policy", "accord.core.views", "accord.core.dialects"}
ENGINE = frozenset({"accord.engine.ports", "accord.engine"})
ADAPTERS = frozenset({"accord.stores", "accord.transports", "accord.git", "accord.web"})
SETTINGS = frozenset({"accord.settings"})
HOME = frozenset({"accord.home"})
FILES = frozenset({"accord.files"})
DESKS = frozenset(
    {
        *("accord.backup", "accord.desk", "accord.mirror", "accord.pact", "accord.reading"),
        *("accord.retention", "accord.verify"),
    }
)
SERVER = frozenset({"accord.app", "accord.serving"})
FRONT = (
    CORE
    | SETTINGS
    | HOME
    | DESKS
    | SERVER
    | {"accord.config", "accord.engine.ports", "accord.git", "accord.client"}
)

# From the bottom up: a part, and the parts it may import besides itself and the bare `accord`.
SEES: dict[str, frozenset[str]] = {
    "accord": frozenset(),
    "accord.settings": frozenset(),
    "accord.home": frozenset(),
    "accord.files": frozenset(),
    "accord.logs": frozenset(),
    "accord.core": frozenset(),
    "accord.core.kernel": frozenset(),
    "accord.config": KERNEL | SETTINGS,
    **dict.fromkeys(sorted(CONTEXTS), KERNEL),
    "accord.core.policy": FACTS,
    "accord.core.views": FACTS,
    "accord.core.dialects": FACTS | {"accord.core.views"},
    "accord.engine.ports": KERNEL,
    "accord.engine": CORE - {"accord.core.dialects"} | {"accord.engine.ports"},
    "accord.stores": CORE | ENGINE | FILES,
    "accord.transports": CORE | ENGINE | FILES | SETTINGS,
    "accord.git": CORE | ENGINE,
    "accord.web": CORE | ENGINE,
    "accord.desk": CORE | ENGINE | {"accord.transports"},
    "accord.mirror": CORE | ENGINE | ADAPTERS,
    "accord.pact": CORE | ENGINE | ADAPTERS,
    "accord.reading": CORE | ENGINE | ADAPTERS,
    "accord.verify": CORE | ENGINE | ADAPTERS | {"accord.reading"},
    "accord.retention": CORE | ENGINE | ADAPTERS | HOME | {"accord.reading", "accord.verify"},
    "accord.backup": CORE | ENGINE | ADAPTERS | FILES | HOME | {"accord.reading", "accord.verify"},
    "accord.kernel": CORE,
    "accord.app": CORE
    | ENGINE
    | ADAPTERS
    | SETTINGS
    | HOME
    | {"accord.config", "accord.desk", "accord.kernel", "accord.mirror", "accord.retention"},
    "accord.tracing": KERNEL | ENGINE,
    "accord.serving": CORE
    | ENGINE
    | ADAPTERS
    | FILES
    | SETTINGS
    | {"accord.app", "accord.config", "accord.tracing"},
    "accord.client": CORE | SETTINGS | {"accord.engine.ports", "accord.app"},
    "accord.agents": FRONT,
    "accord.show": KERNEL,
    "accord.tui": FRONT | {"accord.show"},
    "accord.demo": FRONT | {"accord.agents", "accord.show"},
    "accord.cli": FRONT
    | {"accord.agents", "accord.demo", "accord.logs", "accord.show", "accord.tui"},
    "accord.__main__": frozenset({"accord.cli"}),
}
# These hold others and have no modules of their own: a new one gets a row above.
HOLDERS = frozenset({"accord", "accord.core"})

PURE = "accord.core"
PURE_THIRD_PARTY = frozenset({"msgspec", "rfc8785"})
# Modules of values: no clock, no randomness, no files, no threads, nothing of the machine.
PURE_STANDARD = frozenset(
    {
        *("__future__", "abc", "annotationlib", "base64", "binascii", "bisect", "calendar"),
        *("collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib"),
        *("enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac"),
        *("html", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator"),
        *("re", "shlex", "statistics", "string", "struct", "textwrap", "types", "typing"),
        *("unicodedata", "urllib.parse", "zlib"),
    }
)
IMPURE = frozenset(
    {
        *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
        *("datetime.date.today",),
        *("open", "print", "input", "breakpoint", "eval", "exec", "compile", "__import__"),
    }
)


class Violation(NamedTuple):
    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.what}"


class Import(NamedTuple):
    line: int
    name: str  # the whole dotted name, with what is taken from the module
    alias: str  # what the file calls it


def violations(path: str, source: str) -> Iterator[Violation]:
    """What is wrong with one file, whose path is relative to the source root."""
    tree = ast.parse(source, path)
    module = module_of(path)
    found = list(imports(tree, package_of(path)))
    yield from (Violation(path, *bad) for bad in wrong_layers(module, found))
    if within(module, PURE):
        yield from (Violation(path, *bad) for bad in impure_imports(module, found))
        yield from (Violation(path, *bad) for bad in impure_uses(module, tree, found))


def wrong_layers(module: str, found: list[Import]) -> Iterator[tuple[int, str]]:
    part = part_of(module)
    if part in HOLDERS and module != part:
        yield 1, f"{module} belongs to no part: give it a row in SEES"
        return
    for line, name, _ in found:
        if not within(name, "accord"):
            continue
        target = part_of(name)
        if target not in SEES[part] | {part, "accord"}:
            yield line, f"{module} imports {name}, but {part} may not see {target}"


def impure_imports(module: str, found: list[Import]) -> Iterator[tuple[int, str]]:
    allowed = PURE_STANDARD | PURE_THIRD_PARTY | {"accord"}
    for line, name, _ in found:
        if not any(within(name, each) for each in allowed):
            yield line, f"{module} imports {name}, which the core may not"


def impure_uses(module: str, tree: ast.Module, found: list[Import]) -> Iterator[tuple[int, str]]:
    meaning = {alias: name for _, name, alias in found}
    own = set(names_bound(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        head, *rest = dotted(node)
        if head in own:
            continue
        name = ".".join([meaning.get(head, head), *rest])
        if name in IMPURE:
            yield node.lineno, f"{module} uses {name}, which the core may not"


def imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import, wherever it stands: inside functions and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                for each in names:
                    alias = each.asname or each.name.partition(".")[0]
                    yield Import(node.lineno, each.name, alias)
            case ast.ImportFrom(module, names, level):
                above = package.split(".")[: package.count(".") + 2 - level] if level else []
                base = ".".join([*above, *([module] if module else [])])
                for each in names:
                    name = base if each.name == "*" else f"{base}.{each.name}"
                    yield Import(node.lineno, name, each.asname or each.name)
            case _:
                pass


def names_bound(tree: ast.Module) -> Iterator[str]:
    """Names that the file gives a meaning of its own, other than by importing."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Name(name, ast.Store()) | ast.arg(name):
                yield name
            case _:
                pass


def dotted(node: ast.expr) -> list[str]:
    """`a.b.c` in parts; what is no plain chain of names has an empty head."""
    match node:
        case ast.Name(name):
            return [name]
        case ast.Attribute(value, name):
            return [*dotted(value), name]
        case _:
            return [""]


def module_of(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")


def package_of(path: str) -> str:
    return ".".join(Path(path).parent.parts)


def part_of(name: str) -> str:
    return max((part for part in SEES if within(name, part)), key=len)


def within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def complaints(path: str, source: str) -> list[str]:
    return [str(each) for each in violations(path, source)]


def test_every_module_keeps_to_its_layer_and_the_core_is_pure() -> None:
    files = sorted((SOURCE / "accord").rglob("*.py"))

    found = [
        complaint
        for file in files
        for complaint in complaints(file.relative_to(SOURCE).as_posix(), file.read_text("utf-8"))
    ]

    assert found == [], "\n" + "\n".join(found)


def test_each_part_sees_only_parts_below_it() -> None:
    height = {part: number for number, part in enumerate(SEES)}
    upwards = [
        (part, seen) for part, sees in SEES.items() for seen in sees if height[seen] >= height[part]
    ]

    assert upwards == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("accord/core/room/gates.py", "from accord.core.kernel.ballot import tally"),
        ("accord/core/room/gates.py", "from accord.core.room.state import Room"),
        ("accord/core/room/gates.py", "from .state import Room"),
        ("accord/core/room/__init__.py", "from . import gates, tools"),
        ("accord/core/policy.py", "from accord.core import attention, room"),
        ("accord/core/dialects/pvp.py", "import msgspec\nfrom accord.core.views import digest"),
        ("accord/core/kernel/times.py", "from datetime import datetime\ndatetime.fromisoformat"),
        ("accord/core/room/lifecycle.py", "def open(room): ...\nopen(1)"),
        ("accord/core/room/lifecycle.py", "from accord.core.kernel.log import Ask\nAsk.now"),
        ("accord/engine/engine.py", "import asyncio\nfrom accord.core import people, policy"),
        ("accord/stores/sqlite.py", "import apsw\nfrom accord.engine.ports import Row"),
        ("accord/transports/http.py", "from accord.settings import Settings"),
        ("accord/app.py", "from accord import git, stores, transports, web"),
        ("accord/client.py", "from accord.core.dialects import pvp"),
        ("accord/cli/main.py", "from accord import __version__\nfrom accord.tui import app"),
        ("accord/__main__.py", "from accord.cli.main import main"),
    ],
)
def test_what_the_layers_allow_passes(path: str, source: str) -> None:
    assert complaints(path, source) == []


def test_a_complaint_says_where_and_what() -> None:
    (complaint,) = complaints("accord/app.py", "import asyncio\nfrom accord.cli import main")

    assert complaint == (
        "accord/app.py:2 accord.app imports accord.cli.main, but accord.app may not see accord.cli"
    )


@pytest.mark.parametrize(
    ("path", "source", "line", "name"),
    [
        ("accord/core/kernel/log.py", "import accord.core.room", 1, "accord.core.room"),
        ("accord/core/room/gates.py", "from accord.core import work", 1, "accord.core.work"),
        (
            "accord/core/room/gates.py",
            "if 1:\n  from ..work import tasks",
            2,
            "accord.core.work.tasks",
        ),
        ("accord/core/room/gates.py", "def f():\n  import accord.app", 2, "accord.app"),
        ("accord/core/room/__init__.py", "from .. import work", 1, "accord.core.work"),
        ("accord/core/views/inbox.py", "import accord.core.policy", 1, "accord.core.policy"),
        ("accord/core/policy.py", "import accord.engine.ports", 1, "accord.engine.ports"),
        ("accord/engine/ports.py", "from accord.core import room", 1, "accord.core.room"),
        ("accord/engine/engine.py", "import accord.core.dialects", 1, "accord.core.dialects"),
        ("accord/engine/engine.py", "from accord import stores", 1, "accord.stores"),
        ("accord/stores/sqlite.py", "from accord.transports import *", 1, "accord.transports"),
        ("accord/stores/sqlite.py", "import accord.settings", 1, "accord.settings"),
        ("accord/transports/http.py", "import accord.git.notes", 1, "accord.git.notes"),
        ("accord/web/routes.py", "from accord.app import build", 1, "accord.app.build"),
        ("accord/app.py", "import accord.client", 1, "accord.client"),
        ("accord/client.py", "import accord.stores.memory", 1, "accord.stores.memory"),
        ("accord/tui/app.py", "from accord import stores", 1, "accord.stores"),
        ("accord/agents/loop.py", "import accord.cli.main", 1, "accord.cli.main"),
        ("accord/settings.py", "import accord.core.kernel", 1, "accord.core.kernel"),
    ],
)
def test_what_breaks_a_layer_is_caught(path: str, source: str, line: int, name: str) -> None:
    (complaint,) = complaints(path, source)

    assert complaint.startswith(f"{path}:{line} ")
    assert f" imports {name}, but " in complaint


@pytest.mark.parametrize("path", ["accord/extras.py", "accord/core/gossip/__init__.py"])
def test_a_module_that_no_row_names_is_caught(path: str) -> None:
    (complaint,) = complaints(path, "")

    assert complaint.endswith("belongs to no part: give it a row in SEES")


@pytest.mark.parametrize(
    "name",
    [
        *("apsw", "asyncio", "io", "logging", "os", "os.path", "pathlib", "random", "secrets"),
        *("socket", "sqlite3", "subprocess", "sys", "threading", "time", "urllib.request", "uuid"),
        *("cryptography", "starlette", "zoneinfo"),
    ],
)
def test_the_core_imports_nothing_that_touches_the_world(name: str) -> None:
    assert complaints("accord/core/kernel/ids.py", f"import {name} as it") == [
        f"accord/core/kernel/ids.py:1 accord.core.kernel.ids imports {name}, which the core may not"
    ]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from datetime import datetime\ndatetime.now()", "datetime.datetime.now"),
        ("from datetime import datetime as dt\ndt.utcnow()", "datetime.datetime.utcnow"),
        ("import datetime\ndatetime.datetime.today()", "datetime.datetime.today"),
        ("from datetime import date\ntoday = date.today", "datetime.date.today"),
        ("\nopen('notes')", "open"),
        ("\nprint('here')", "print"),
        ("\nlist(map(input, []))", "input"),
        ("\n__import__('os')", "__import__"),
    ],
)
def test_the_core_reads_no_clock_and_no_file(source: str, name: str) -> None:
    assert complaints("accord/core/room/gates.py", source) == [
        f"accord/core/room/gates.py:2 accord.core.room.gates uses {name}, which the core may not"
    ]


def test_the_package_asks_for_what_the_pins_are_made_from() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT / "requirements" / "runtime.in").read_text("utf-8").splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]

    assert set(map(Requirement, package["dependencies"])) == set(map(Requirement, pinned))
