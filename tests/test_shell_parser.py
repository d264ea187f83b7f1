"""The shell parser runs apart: no text ends the process that asks, and a failure is a refusal."""

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord import shell_parser
from accord.core.kernel.refusal import Refused
from accord.core.policy.call_classification import classify
from accord.core.policy.policy_toml import NO_POLICY
from accord.core.policy.reported_call import CallKind, Place, ReportedCall
from accord.real_paths import resolve
from accord.shell_parser import MAX_SCRIPT_BYTES, parse_shell

# Repetitions for which the grammar's parser takes many seconds.
SLOW = ("@(a|b) " * 6700, "<<-EOF\n " * 7000, "x+=(" * 7900)
# Stand-ins for a parser that is broken, by how it is.
BROKEN = {
    "crashes": "import os, signal; os.read(0, 4); os.kill(os.getpid(), signal.SIGSEGV)",
    "ends": "import os; os.read(0, 4)",
    "says nothing valid": r"import os; os.read(0, 4); os.write(1, b'\0\0\0\1x')",
    "says too much": r"import os; os.read(0, 4); os.write(1, b'\xff\xff\xff\xff')",
    "hangs": "import time; time.sleep(60)",
}


@pytest.fixture
def process() -> Iterator[shell_parser._ParserProcess]:
    made = shell_parser._ParserProcess()
    yield made
    made.end()


def is_read(text: str) -> bool:
    here = str(Path(__file__).parent)
    call = ReportedCall(CallKind.SHELL, "Bash", {"command": text}, Place(here, here))
    return classify(resolve(call, parse_shell), NO_POLICY, parse_shell).is_read


@pytest.mark.parametrize("text", SLOW, ids=["patterns", "documents", "arrays"])
def test_a_text_that_takes_too_long_is_refused_and_the_next_one_is_read(text: str) -> None:
    began = time.process_time()

    with pytest.raises(Refused, match="cannot be analysed"):
        parse_shell(text)

    assert time.process_time() - began < 1.0, "the time is that of the other process"
    assert is_read("ls")


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_parser_is_a_refusal(
    how: str, process: shell_parser._ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_parser, "COMMAND", (sys.executable, "-S", "-c", BROKEN[how]))
    monkeypatch.setattr(shell_parser, "TIMEOUT_S", 3.0 if how == "hangs" else 30.0)

    with pytest.raises(Refused, match="cannot be analysed"):
        process.parse(b"ls")

    monkeypatch.undo()
    assert len(process.parse(b"ls").commands) == 1


def test_a_missing_interpreter_is_a_refusal(
    process: shell_parser._ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_parser, "COMMAND", ("/no/such/python",))

    with pytest.raises(Refused, match="the parser does not work"):
        process.parse(b"ls")


def test_a_parser_that_was_killed_is_started_again(process: shell_parser._ParserProcess) -> None:
    assert process.parse(b"ls").commands
    running = process._process
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    running.wait()

    assert process.parse(b"ls").commands


def test_a_forked_process_has_a_parser_of_its_own() -> None:
    assert parse_shell("ls forked").commands
    child = os.fork()
    if child == 0:
        words = parse_shell(f"ls {os.getpid()}").commands[0].words
        os._exit(0 if words[1].text == str(os.getpid()) else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert parse_shell("ls after").commands[0].words[1].text == "after"


def test_the_longest_text_and_a_whole_file_in_a_here_document_are_read() -> None:
    longest = "ls " + "x" * (MAX_SCRIPT_BYTES - 3)
    document = "cat > made <<'EOF'\n" + "def f(x): return {x: [x]}\n" * 2000 + "EOF\n"

    assert len(parse_shell(longest).commands[0].words) == 2
    assert not parse_shell(document).problem
    assert parse_shell(longest + "x").problem


# Random texts of what the parser has to tell apart.
TOKENS = (
    *("ls", "cat a", "$(", "`", "${", "${x:-", "${x/", "$((", "))", "((", "[[", "]]", "{", "}"),
    *("(", ")", "<<EOF\n", "<<-EOF\n", "<<'E'\n", "<<\\X\n", "EOF\n", "\n", ";", "&&", "||", "|"),
    *("&", ">", "<<<", "<(", ">(", "2>&1", '"', "'", "$'", '$"', "\\", "\\\n", "case x in", "esac"),
    *("if", "then", "fi", "for i in", "do", "done", "function f", "f() {", "x=1", "x[1]=", "x+=("),
    *(
        "=~",
        "!",
        "*",
        "[a-z]",
        "@(a|b)",
        "!(x)",
        "{1..3}",
        "#c\n",
        "~",
        "\u00e9",
        "\u00a0",
        "\u2003",
    ),
    *(
        "\U0001f600",
        "\x00",
        "\x01",
        "\x7f",
        "\x80",
        "\r",
        "\t",
        "\v",
        "--",
        "$x",
        "$@",
        "declare -a x=",
    ),
    *("test -f", "[ a ]", "export", "coproc", "select x in", "%%", "//", ":-", "@Q", "=", " ", " "),
)
PAIRS = (("$(", ")"), ("(", ")"), ("{ ", ";}"), ("${x:-", "}"), ('"$(', ')"'), ("[[ ( ", " ) ]]"))
TEXTS = 20_000 if os.environ.get("ACCORD_LONG") else 300
MEBIBYTE = 1 << 20


def random_text(drawn: random.Random) -> str:
    match drawn.randrange(8):
        case 0:
            return drawn.choice(TOKENS) * drawn.randint(1, 600)
        case 1:
            opening, closing = drawn.choice(PAIRS)
            depth = drawn.randint(1, 3000)
            return opening * depth + "x" + closing * drawn.choice((depth, depth // 2, 0))
        case 2:
            return "".join(chr(drawn.randint(0, 0x10FFFF)) for _ in range(drawn.randint(1, 200)))
        case _:
            return "".join(drawn.choice(TOKENS) for _ in range(drawn.randint(1, 60)))


def test_no_text_ends_the_process_that_asks_and_what_fails_is_no_read() -> None:
    drawn = random.Random(17)
    refused = 0
    for text in (*(random_text(drawn) for _ in range(TEXTS)), "\0", "ls\0", "x" * MEBIBYTE):
        try:
            script = parse_shell(text)
        except Refused:
            refused += 1
            with pytest.raises(Refused):
                is_read(text)
        else:
            assert not (script.problem and is_read(text)), ascii(text)

    assert is_read("ls"), "the parser goes on"
    assert refused < TEXTS / 20
