"""The table of commands, their help, and how each of them ends."""

import argparse
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord import __version__
from accord.cli import main as cli
from accord.cli.serve import command
from accord.client import ServerRefused, SignedOut, Unreachable
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.refusal import Reason, Refused
from accord.engine.ports import ForeignStoreError, StoreError
from accord.settings.client import SettingsError
from accord.settings.server import load_config
from tests.helpers.clients.cli import run_accord
from tests.helpers.measure.cpu_time import machine_slowdown, measure_child_cpu
from tests.spec import proves

QUICK_S = 0.1


def that_raises(error: BaseException) -> Any:
    """A command that ends in this."""

    def run(args: argparse.Namespace) -> int:
        raise error

    return SimpleNamespace(__doc__="Fails.", arguments=lambda _: None, run=run)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    def ends(error: BaseException) -> int:
        monkeypatch.setattr(cli, "load_command", lambda _: that_raises(error))
        return cli.main(["serve"])

    return ends


def test_help_lists_every_command_and_nothing_else() -> None:
    shown = run_accord("--help")

    assert shown.code == 0
    listed = [line.split()[0] for line in shown.out.splitlines() if line.startswith("  ")]
    assert listed == list(cli.COMMANDS)
    assert shown == run_accord()


def test_the_commands_of_this_version_are_there() -> None:
    assert set(cli.COMMANDS) == {
        *("serve", "demo", "doctor", "session", "gates", "approve", "reject", "token", "keys"),
        *("verify", "backup", "restore", "compact", "stdio", "decide", "git", "pact", "why"),
        *("login", "whoami", "logout", "invite", "people", "mcp", "daemon"),
        *("connect", "disconnect", "policy"),
        *("thread", "inbox", "agent", "agents", "wakes", "store", "supervise"),
    }


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_module_whose_docstring_is_its_help(name: str) -> None:
    module = cli.load_command(name)
    shown = cli.build_parser(name, module).format_help()

    summary = (module.__doc__ or "").partition("\n")[0]
    assert summary.endswith(".")
    assert summary in shown
    examples = shown.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith("  ") for line in examples)
    assert any(line.startswith(f"  accord {name}") for line in examples)
    assert callable(module.run)


def verbs() -> list[tuple[str, str]]:
    """Every verb of every command."""
    return [
        (name, verb)
        for name in cli.COMMANDS
        for action in cli.build_parser(name, cli.load_command(name))._actions
        if isinstance(action, argparse._SubParsersAction)
        for verb in action.choices
    ]


@pytest.mark.parametrize(("name", "verb"), verbs())
def test_every_verb_has_an_example_too(name: str, verb: str) -> None:
    shown = run_accord(name, verb, "--help").out

    assert f"accord {name} {verb}" in shown.partition("examples:\n")[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_by_either_road_is_the_same(name: str) -> None:
    by_flag, by_word = run_accord(name, "--help"), run_accord("help", name)

    assert by_flag.code == 0
    assert by_flag == by_word
    assert max(map(len, by_flag.out.splitlines())) <= 100


def test_serve_has_the_flags_that_others_rely_on() -> None:
    parser = argparse.ArgumentParser()
    command.arguments(parser)

    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert flags >= {
        *("--host", "--port", "--store", "--data-dir", "--auth", "--durability"),
        *("--rate-limit", "--bridge-port", "--ready-file"),
    }
    usual = load_config(
        command.values_from_flags(parser.parse_args([])), {}, Path("/nonexistent")
    ).require_valid()
    assert (usual.host, usual.port, usual.auth, usual.durability) == (
        *("127.0.0.1", 7420),
        *("token", "full"),
    )
    assert usual.bridge_port == 9847


def test_the_version_costs_next_to_nothing() -> None:
    def once() -> float:
        ran, took = measure_child_cpu(lambda: run_accord("--version"))
        assert ran.out == f"accord {__version__}\n"
        return took

    assert min(once() for _ in range(5)) / machine_slowdown() < QUICK_S


def test_the_overview_imports_no_command_and_no_library() -> None:
    program = (
        "import sys; from accord.cli.main import main; main(['--help']); "
        "print(*(n for n in sys.modules if n.partition('.')[0] in {'msgspec', 'asyncio', "
        "'argparse', 'starlette', 'cryptography', 'apsw'}), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert ran.stderr.strip() == ""


@pytest.mark.parametrize(
    ("typed", "meant"), [("sevre", "serve"), ("aprove", "approve"), ("sessions", "session")]
)
def test_a_slip_is_told_what_was_nearest(typed: str, meant: str) -> None:
    ran = run_accord(typed)

    assert ran.code == 2
    assert ran.err == (f"accord: there is no command {typed!r}; did you mean `accord {meant}`?\n")


def test_what_is_no_command_is_bad_input() -> None:
    assert run_accord("xyzzy").err.endswith("`accord --help` lists the commands\n")
    assert run_accord("--frob").code == 2
    assert run_accord("gates", "--frob").code == 2


@proves("UNI-26")
@pytest.mark.parametrize("why", Reason)
def test_a_refusal_ends_in_its_sentence_and_its_code(
    why: Reason, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(Refused(why, "That cannot be")) == ERROR_CODES[why].exit

    assert capsys.readouterr() == ("", "accord: That cannot be\n")


@proves("UNI-26")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ServerRefused("INVALID_MESSAGE", "No"), 2),
        (ServerRefused("UNAUTHORIZED", "No"), 3),
        (ServerRefused("SESSION_NOT_FOUND", "No"), 4),
        (ServerRefused("PARTICIPANT_NOT_FOUND", "No"), 4),
        (ServerRefused("INVALID_STATE", "No"), 5),
        (ServerRefused("GATE_FAILED", "No"), 5),
        (ServerRefused("CONTEXT_TOO_LARGE", "No"), 2),
        (ServerRefused("RATE_LIMITED", "No"), 6),
        (ServerRefused("INTERNAL_ERROR", "No"), 1),
        (ServerRefused("OF_A_LATER_VERSION", "No"), 1),
        (SignedOut("No"), 3),
        (Unreachable("No"), 6),
        (SettingsError("No"), 2),
        (ForeignStoreError("No"), 5),
        (StoreError("No"), 6),
        (PermissionError(13, "No", "file"), 3),
        (FileNotFoundError(2, "No", "file"), 4),
    ],
)
def test_whoever_says_no_the_code_means_the_same(
    error: Exception, code: int, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(error) == code

    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"accord: (.+: )?No(; .+)?\n", err)


def test_a_fault_of_ours_is_one_sentence(
    failing: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCORD_DEBUG", raising=False)
    assert failing(ZeroDivisionError("by nought")) == 1
    assert capsys.readouterr().err == (
        "accord: something went wrong inside Accord (ZeroDivisionError: by nought); "
        "run it again with ACCORD_DEBUG=1 to see where\n"
    )

    monkeypatch.setenv("ACCORD_DEBUG", "1")
    assert failing(ZeroDivisionError("by nought")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_no_fault(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "session lst",
            "accord session: there is no verb 'lst'; did you mean `accord session list`?",
        ),
        ("token x", "accord token: there is no verb 'x'; the verbs are issue, list, revoke"),
        (
            "session create --qorum=any",
            "accord session create: there is no flag --qorum; did you mean --quorum?",
        ),
        (
            "pact merge --feature cart",
            (
                "accord pact merge: there is no flag --feature here, but `accord pact assign`"
                " has one; `accord pact merge --help` lists the flags here"
            ),
        ),
        (
            "pact assign T1 -- --feature cart",
            (
                "accord pact assign: --feature comes after `--`, where nothing is read as a flag;"
                " put it before that"
            ),
        ),
        ("gates x", "accord gates: unexpected argument 'x'; `accord gates --help` explains"),
        ("reject g", "accord reject: missing: --reason; `accord reject --help` explains"),
    ],
)
def test_a_wrong_word_gets_one_sentence(words: str, said: str) -> None:
    ran = run_accord(*words.split())

    assert (ran.code, ran.out, ran.err) == (2, "", f"{said}\n")


def test_a_command_without_its_verb_shows_what_there_is() -> None:
    ran = run_accord("keys")

    assert (ran.code, ran.err) == (2, "")
    assert ran.out == run_accord("keys", "--help").out


def test_help_fits_the_screen() -> None:
    for name in cli.COMMANDS:
        text, _, _ = run_accord(name, "--help", COLUMNS="60").out.partition("examples:")
        assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize("words", ["gates --as a", "token list", "session list", "keys rotate"])
def test_a_server_that_was_named_is_meant(words: str, tmp_path: Path) -> None:
    here = {"ACCORD_HOME": str(tmp_path / "home")}
    silent = run_accord(*words.split(), "--url", "http://127.0.0.1:9", cwd=tmp_path, **here)
    assert silent.code == 6
    assert "`accord serve --port 9` starts a server" in silent.err

    for url in ("http://127.0.0.1:99999", "7420"):
        wrong = run_accord(*words.split(), "--url", url, cwd=tmp_path, **here)
        assert wrong.code == 2
        assert "is not a server address" in wrong.err
    assert not (tmp_path / "home").exists()


def test_no_key_changes_here_because_a_server_is_silent(tmp_path: Path) -> None:
    ran = run_accord("keys", "rotate", cwd=tmp_path, ACCORD_URL="http://127.0.0.1:9")

    assert ran.code == 6


NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    "words", [("session", "create"), ("gates",), ("approve", "g"), ("session", "list")]
)
def test_who_has_no_server_yet_is_told_how_to_start_one(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = run_accord(*words, cwd=tmp_path, ACCORD_URL=NOBODY, ACCORD_HOME=str(tmp_path / "home"))

    assert (ran.code, ran.out) == (6, "")
    assert f"{NOBODY} does not answer" in ran.err
    assert "`accord serve --port 9` starts a server" in ran.err


@pytest.mark.parametrize(
    "words",
    [("keys", "list"), ("token", "list"), ("verify",), ("backup", "b")],
)
def test_looking_makes_no_log_where_there_is_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "home"

    ran = run_accord(*words, cwd=tmp_path, ACCORD_HOME=str(home))

    assert (ran.code, ran.out) == (4, "")
    assert "start `accord serve` to create one, or name another --data-dir" in ran.err
    assert not home.exists()
