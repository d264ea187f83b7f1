"""Layering: which package may import which, and what the pure core may not use."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
STATE = KERNEL | CONTEXTS
POLICY = frozenset({"accord.core.policy"})
CORE = STATE | POLICY | {"accord.core.views", "accord.core.dialects"}
ENGINE = frozenset({"accord.engine.ports", "accord.engine"})
ADAPTERS = frozenset({"accord.stores", "accord.transports", "accord.git"})
FILES = frozenset({"accord.atomic_files"})
PROCESSES = frozenset({"accord.child_processes"})
DATA_DIR = frozenset({"accord.data_dir"})
API = frozenset({"accord.api"})
IDENTITY = frozenset({"accord.identity"})
PROFILES = frozenset({"accord.settings.profiles"})
PROFILE_STORE = frozenset({"accord.settings.profile_store"})
CLIENT_SETTINGS = PROFILES | {"accord.settings.client"}
SERVER_SETTINGS = frozenset({"accord.settings.server"})
HOOK_PARTS = frozenset(
    {
        "accord.hosts.connections",
        "accord.hosts.gate_hook",
        "accord.hosts.hook_events",
        "accord.hosts.last_hook_call",
    }
)
HOSTS = HOOK_PARTS | {"accord.hosts"}
LOG_READERS = frozenset({"accord.operations.local_log", "accord.operations.verify"})
CALL_RULES = POLICY | {"accord.shell_parser", "accord.real_paths"}
OWN_DIRECTORIES = frozenset({"accord.own_directories"})
# What a command-line program or an agent may build on: never a store, a transport or the engine
# itself, only the services in front of them.
FRONT = (
    CORE
    | API
    | DATA_DIR
    | CLIENT_SETTINGS
    | PROFILE_STORE
    | SERVER_SETTINGS
    | LOG_READERS
    | CALL_RULES
    | OWN_DIRECTORIES
    | {"accord.operations.backup", "accord.operations.retention", "accord.operations.store_copy"}
    | {"accord.identity.token_service", "accord.engine.ports"}
    | {"accord.git", "accord.pact", "accord.client"}
    | {"accord.server.engine_factory", "accord.server.options", "accord.server.serving"}
)

# From the bottom up: a package, and what it may import besides itself and the bare `accord`. The
# row with the longest matching name applies, so `accord.pact.mirror` is not part of `accord.pact`.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "accord": frozenset(),
    "accord.core": frozenset(),
    "accord.operations": frozenset(),
    "accord.server": frozenset(),
    "accord.settings": frozenset(),
    "accord.settings.profiles": frozenset(),
    "accord.settings.client": PROFILES,
    "accord.data_dir": frozenset(),
    "accord.atomic_files": frozenset(),
    "accord.child_processes": frozenset(),
    "accord.telemetry.logs": frozenset(),
    "accord.core.kernel": frozenset(),
    **dict.fromkeys(sorted(CONTEXTS), KERNEL),
    "accord.settings.server": KERNEL | CLIENT_SETTINGS | {"accord.core.room"},
    "accord.settings.profile_store": FILES | PROFILES | {"accord.core.people"},
    "accord.core.views": STATE,
    "accord.core.policy": KERNEL | {"accord.core.room"},
    "accord.shell_grammar": POLICY,
    "accord.shell_parser": KERNEL | POLICY,
    "accord.real_paths": POLICY,
    "accord.own_directories": CLIENT_SETTINGS,
    "accord.core.dialects": STATE | {"accord.core.views"},
    "accord.engine.ports": KERNEL,
    "accord.engine": CORE - {"accord.core.dialects"} | {"accord.engine.ports"},
    "accord.api": CORE,
    "accord.identity": KERNEL | API | FILES | {"accord.core.people"},
    "accord.stores": CORE | ENGINE | FILES,
    "accord.transports": CORE | ENGINE | FILES | CLIENT_SETTINGS | IDENTITY | API,
    "accord.git": CORE | ENGINE | PROFILES | PROFILE_STORE,
    "accord.identity.people_admin": KERNEL
    | API
    | IDENTITY
    | {"accord.core.people", "accord.engine.ports"},
    "accord.identity.token_service": CORE
    | ENGINE
    | IDENTITY
    | API
    | {"accord.transports", "accord.identity.people_admin"},
    "accord.identity.sign_in_service": KERNEL
    | API
    | IDENTITY
    | {"accord.core.people", "accord.identity.token_service"},
    "accord.waking.machine": frozenset(),
    "accord.waking.claude_sessions": frozenset(),
    "accord.waking": KERNEL | PROCESSES | {"accord.core.attention"},
    "accord.telemetry.tracing": KERNEL | ENGINE,
    "accord.telemetry": CORE | ENGINE | {"accord.transports"},
    "accord.pact": CORE | ENGINE | FILES | {"accord.git"},
    "accord.pact.mirror": CORE | ENGINE | {"accord.git", "accord.pact"},
    "accord.operations.local_log": CORE | ENGINE | ADAPTERS,
    "accord.operations.verify": CORE | ENGINE | ADAPTERS | {"accord.operations.local_log"},
    "accord.operations.store_copy": CORE | ENGINE | ADAPTERS,
    "accord.operations.retention": CORE | ENGINE | ADAPTERS | IDENTITY | DATA_DIR | LOG_READERS,
    "accord.operations.backup": (
        CORE | ENGINE | ADAPTERS | IDENTITY | FILES | DATA_DIR | LOG_READERS
    ),
    "accord.server.decision_kernel": CORE,
    "accord.server.engine_factory": (
        CORE
        | ENGINE
        | ADAPTERS
        | IDENTITY
        | DATA_DIR
        | {"accord.identity.token_service", "accord.server.decision_kernel"}
    ),
    "accord.server.options": DATA_DIR | SERVER_SETTINGS,
    "accord.server.call_rules": KERNEL | CALL_RULES | {"accord.core.people", "accord.core.room"},
    "accord.server.several_servers": (
        CORE
        | ENGINE
        | ADAPTERS
        | IDENTITY
        | {"accord.identity.token_service", "accord.server.engine_factory"}
    ),
    "accord.server.app": (
        CORE
        | API
        | ENGINE
        | ADAPTERS
        | IDENTITY
        | CLIENT_SETTINGS
        | SERVER_SETTINGS
        | DATA_DIR
        | {"accord.identity.token_service", "accord.identity.sign_in_service"}
        | {
            "accord.pact.mirror",
            "accord.operations.retention",
            "accord.waking",
            "accord.waking.machine",
        }
        | {"accord.server.call_rules", "accord.server.engine_factory", "accord.server.options"}
        | {"accord.telemetry", "accord.server.several_servers"}
    ),
    "accord.server.serving": (
        CORE
        | ENGINE
        | ADAPTERS
        | IDENTITY
        | FILES
        | CLIENT_SETTINGS
        | SERVER_SETTINGS
        | DATA_DIR
        | {"accord.server.app", "accord.server.options", "accord.telemetry.tracing"}
        | {"accord.server.several_servers"}
    ),
    "accord.client": CORE | API | CLIENT_SETTINGS | PROFILE_STORE | {"accord.engine.ports"},
    "accord.hosts.gate_hook": frozenset(),
    "accord.hosts.hook_events": frozenset(),
    "accord.hosts.last_hook_call": frozenset(),
    "accord.hosts.connections": FILES
    | PROFILES
    | PROFILE_STORE
    | {"accord.hosts.hook_events", "accord.hosts.last_hook_call"},
    "accord.hosts": FRONT | FILES | PROCESSES | HOOK_PARTS,
    "accord.daemon.host_tools": FRONT | {"accord.hosts.hook_events"},
    "accord.daemon": FRONT | FILES | HOSTS | {"accord.daemon.host_tools"},
    "accord.agents": FRONT | PROCESSES | {"accord.daemon.host_tools", "accord.hosts.hook_events"},
    "accord.supervisor": FRONT | HOSTS | {"accord.waking.machine", "accord.waking.claude_sessions"},
    "accord.show": KERNEL,
    "accord.demo": FRONT | {"accord.agents", "accord.show"},
    "accord.cli": FRONT
    | FILES
    | {"accord.agents", "accord.demo", "accord.telemetry.logs", "accord.show"}
    | HOSTS
    | {"accord.daemon", "accord.supervisor"}
    | {"accord.waking.machine", "accord.waking.claude_sessions"},
    "accord.__main__": frozenset({"accord.cli"}),
}
# Packages that only group others. A module directly inside one needs a row of its own above.
GROUPS = frozenset(
    {"accord", "accord.core", "accord.operations", "accord.server", "accord.settings"}
)

PURE = "accord.core"
PURE_THIRD_PARTY = frozenset({"msgspec", "rfc8785"})
# Modules that only compute: no clock, randomness, files, threads, processes or network.
PURE_STANDARD = frozenset(
    {
        *("__future__", "abc", "annotationlib", "base64", "binascii", "bisect", "calendar"),
        *("collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib"),
        *("enum", "fnmatch", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac"),
        *("html", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator"),
        *("re", "shlex", "statistics", "string", "struct", "textwrap", "tomllib", "types"),
        *("typing", "unicodedata", "urllib.parse", "zlib"),
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
    name: str  # the full dotted name, including the imported object
    alias: str  # the local name


def violations(path: str, source: str) -> Iterator[Violation]:
    """The violations in one file; `path` is relative to the source root."""
    tree = ast.parse(source, path)
    module = module_of(path)
    imported = list(imports(tree, package_of(path)))
    yield from (Violation(path, *problem) for problem in layer_violations(module, imported))
    if within(module, PURE):
        yield from (
            Violation(path, *problem) for problem in impure_import_violations(module, imported)
        )
        yield from (
            Violation(path, *problem) for problem in impure_use_violations(module, tree, imported)
        )


def layer_violations(module: str, imported: list[Import]) -> Iterator[tuple[int, str]]:
    row = row_of(module)
    if row in GROUPS and module != row:
        yield 1, f"{module} is in no layer: add a row to MAY_IMPORT"
        return
    for line, name, _ in imported:
        if not within(name, "accord"):
            continue
        target = row_of(name)
        if target not in MAY_IMPORT[row] | {row, "accord"}:
            yield line, f"{module} imports {name}, but {row} may not import {target}"


def impure_import_violations(module: str, imported: list[Import]) -> Iterator[tuple[int, str]]:
    allowed = PURE_STANDARD | PURE_THIRD_PARTY | {"accord"}
    for line, name, _ in imported:
        if not any(within(name, package) for package in allowed):
            yield line, f"{module} imports {name}, which the core may not"


def impure_use_violations(
    module: str, tree: ast.Module, imported: list[Import]
) -> Iterator[tuple[int, str]]:
    imported_name = {alias: name for _, name, alias in imported}
    defined = set(names_defined(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        head, *rest = dotted(node)
        if head in defined:
            continue
        name = ".".join([imported_name.get(head, head), *rest])
        if name in IMPURE:
            yield node.lineno, f"{module} uses {name}, which the core may not"


def imports(tree: ast.Module, package: str) -> Iterator[Import]:
    """Every import of a file, including those in functions and under TYPE_CHECKING."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                for item in names:
                    alias = item.asname or item.name.partition(".")[0]
                    yield Import(node.lineno, item.name, alias)
            case ast.ImportFrom(module, names, level):
                above = package.split(".")[: package.count(".") + 2 - level] if level else []
                base = ".".join([*above, *([module] if module else [])])
                for item in names:
                    name = base if item.name == "*" else f"{base}.{item.name}"
                    yield Import(node.lineno, name, item.asname or item.name)
            case _:
                pass


def names_defined(tree: ast.Module) -> Iterator[str]:
    """Names that the file defines or assigns; these shadow builtins of the same name."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.Name(name, ast.Store()) | ast.arg(name):
                yield name
            case _:
                pass


def dotted(node: ast.expr) -> list[str]:
    """The parts of `a.b.c`; the first is empty unless the chain starts with a plain name."""
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


def row_of(name: str) -> str:
    return max((row for row in MAY_IMPORT if within(name, row)), key=len)


def within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def violation_texts(path: str, source: str) -> list[str]:
    return [str(violation) for violation in violations(path, source)]


def test_every_module_respects_its_layer_and_the_core_is_pure() -> None:
    files = sorted((SOURCE / "accord").rglob("*.py"))

    found = [
        text
        for file in files
        for text in violation_texts(file.relative_to(SOURCE).as_posix(), file.read_text("utf-8"))
    ]

    assert found == [], "\n" + "\n".join(found)


def test_rows_import_only_from_rows_below_them() -> None:
    height = {row: number for number, row in enumerate(MAY_IMPORT)}
    upwards = [
        (row, imported)
        for row, allowed in MAY_IMPORT.items()
        for imported in allowed
        if height[imported] >= height[row]
    ]

    assert upwards == []


def test_every_row_names_an_existing_module_or_package() -> None:
    missing = [row for row in MAY_IMPORT if not existing_file(row.replace(".", "/"))]

    assert missing == []


def existing_file(path: str) -> bool:
    stem = SOURCE / path.removesuffix(".py")
    return stem.with_suffix(".py").is_file() or (stem / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("accord/core/room/approval/gates.py", "from accord.core.kernel.ballot import tally"),
        ("accord/core/room/approval/gates.py", "from accord.core.room.state import Room"),
        ("accord/core/room/approval/gates.py", "from .votes import GatePassed"),
        ("accord/core/room/__init__.py", "from . import audience, state"),
        ("accord/core/views/sessions.py", "from accord.core import people, room"),
        ("accord/core/dialects/pvp.py", "import msgspec\nfrom accord.core.views import sessions"),
        (
            "accord/core/kernel/timestamps.py",
            "from datetime import datetime\ndatetime.fromisoformat",
        ),
        ("accord/core/room/state.py", "def open(room): ...\nopen(1)"),
        ("accord/core/room/state.py", "from accord.core.kernel.refusal import Reason\nReason.now"),
        ("accord/engine/engine.py", "import asyncio\nfrom accord.core import people, views"),
        ("accord/stores/memory.py", "import apsw\nfrom accord.engine.ports import Row"),
        ("accord/transports/intake.py", "from accord.settings.client import Settings"),
        ("accord/transports/intake.py", "from accord.identity.token_signing import Identity"),
        ("accord/pact/mirror/service.py", "from accord.pact.ledger import Ledger"),
        ("accord/server/app.py", "from accord import git, stores, telemetry, transports"),
        ("accord/client/client.py", "from accord.core.dialects import pvp"),
        ("accord/client/client.py", "from accord.api.responses import SessionDetail"),
        ("accord/transports/http/api_docs/openapi.py", "from accord.api import responses"),
        ("accord/cli/main.py", "from accord import __version__\nfrom accord.demo import scenario"),
        ("accord/__main__.py", "from accord.cli.main import main"),
    ],
)
def test_allowed_imports_have_no_violation(path: str, source: str) -> None:
    assert existing_file(path)
    assert violation_texts(path, source) == []


def test_violation_names_file_line_and_both_layers() -> None:
    (text,) = violation_texts("accord/server/app.py", "import asyncio\nfrom accord.cli import main")

    assert text == (
        "accord/server/app.py:2 accord.server.app imports accord.cli.main, "
        "but accord.server.app may not import accord.cli"
    )


@pytest.mark.parametrize(
    ("path", "source", "line", "name"),
    [
        ("accord/core/kernel/ballot.py", "import accord.core.room", 1, "accord.core.room"),
        (
            "accord/core/room/approval/gates.py",
            "from accord.core import work",
            1,
            "accord.core.work",
        ),
        (
            "accord/core/room/approval/gates.py",
            "if 1:\n  from ...work import tasks",
            2,
            "accord.core.work.tasks",
        ),
        (
            "accord/core/room/approval/gates.py",
            "def f():\n  import accord.server.app",
            2,
            "accord.server.app",
        ),
        ("accord/core/room/__init__.py", "from .. import work", 1, "accord.core.work"),
        (
            "accord/core/views/pact_board.py",
            "import accord.core.dialects",
            1,
            "accord.core.dialects",
        ),
        ("accord/core/views/pact_board.py", "import accord.engine.ports", 1, "accord.engine.ports"),
        ("accord/engine/ports.py", "from accord.core import room", 1, "accord.core.room"),
        ("accord/engine/engine.py", "import accord.core.dialects", 1, "accord.core.dialects"),
        ("accord/engine/engine.py", "from accord import stores", 1, "accord.stores"),
        ("accord/engine/engine.py", "from accord import telemetry", 1, "accord.telemetry"),
        ("accord/stores/memory.py", "from accord.transports import *", 1, "accord.transports"),
        ("accord/stores/memory.py", "import accord.settings.client", 1, "accord.settings.client"),
        ("accord/stores/memory.py", "import accord.identity", 1, "accord.identity"),
        (
            "accord/identity/token_signing.py",
            "import accord.transports.intake",
            1,
            "accord.transports.intake",
        ),
        (
            "accord/transports/intake.py",
            "import accord.git.records.notes",
            1,
            "accord.git.records.notes",
        ),
        (
            "accord/transports/intake.py",
            "from accord.server.app import build",
            1,
            "accord.server.app.build",
        ),
        ("accord/transports/intake.py", "import accord.telemetry", 1, "accord.telemetry"),
        ("accord/api/responses.py", "import accord.transports", 1, "accord.transports"),
        ("accord/api/tokens.py", "import accord.identity", 1, "accord.identity"),
        ("accord/telemetry/logs.py", "import accord.core.kernel", 1, "accord.core.kernel"),
        ("accord/telemetry/metrics.py", "import accord.stores", 1, "accord.stores"),
        ("accord/pact/ledger.py", "import accord.pact.mirror", 1, "accord.pact.mirror"),
        ("accord/pact/ledger.py", "import accord.transports", 1, "accord.transports"),
        ("accord/operations/verify.py", "import accord.server.app", 1, "accord.server.app"),
        ("accord/server/app.py", "import accord.client", 1, "accord.client"),
        ("accord/server/app.py", "import accord.pact.ledger", 1, "accord.pact.ledger"),
        ("accord/client/client.py", "import accord.stores.memory", 1, "accord.stores.memory"),
        ("accord/client/client.py", "import accord.server.app", 1, "accord.server.app"),
        ("accord/show/text.py", "from accord import client", 1, "accord.client"),
        ("accord/demo/scenario.py", "from accord import stores", 1, "accord.stores"),
        ("accord/cli/main.py", "from accord import transports", 1, "accord.transports"),
        (
            "accord/cli/main.py",
            "from accord.identity import token_signing",
            1,
            "accord.identity.token_signing",
        ),
        ("accord/agents/loop.py", "import accord.cli.main", 1, "accord.cli.main"),
        ("accord/settings/client.py", "import accord.core.kernel", 1, "accord.core.kernel"),
    ],
)
def test_import_of_a_forbidden_layer_is_reported(
    path: str, source: str, line: int, name: str
) -> None:
    (text,) = violation_texts(path, source)

    assert existing_file(path)
    assert text.startswith(f"{path}:{line} ")
    assert f" imports {name}, but " in text


@pytest.mark.parametrize(
    "path",
    ["accord/extras.py", "accord/core/gossip/__init__.py", "accord/operations/upgrade.py"],
)
def test_module_without_a_row_is_reported(path: str) -> None:
    (text,) = violation_texts(path, "")

    assert text.endswith("is in no layer: add a row to MAY_IMPORT")


@pytest.mark.parametrize(
    "name",
    [
        *("apsw", "asyncio", "io", "logging", "os", "os.path", "pathlib", "random", "secrets"),
        *("socket", "sqlite3", "subprocess", "sys", "threading", "time", "urllib.request", "uuid"),
        *("cryptography", "starlette", "zoneinfo"),
    ],
)
def test_core_may_not_import_modules_with_side_effects(name: str) -> None:
    assert violation_texts("accord/core/kernel/ids.py", f"import {name} as it") == [
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
def test_core_may_not_read_the_clock_or_do_io(source: str, name: str) -> None:
    assert violation_texts("accord/core/kernel/ids.py", source) == [
        f"accord/core/kernel/ids.py:2 accord.core.kernel.ids uses {name}, which the core may not"
    ]


def test_pinned_dependencies_satisfy_the_declared_ranges() -> None:
    lines = (ROOT / "requirements" / "runtime.in").read_text("utf-8").splitlines()
    declared = [Requirement(line) for line in lines if line and not line.startswith("#")]
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version
        for pin in map(Requirement, package["dependencies"])
    }

    assert [
        range_
        for range_ in declared
        if pinned[canonicalize_name(range_.name)] not in range_.specifier
    ] == []
