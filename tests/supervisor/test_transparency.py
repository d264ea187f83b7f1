"""Under the relay a program behaves as without it: bytes, size, signals, job control, exit code."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from accord.supervisor.frames import FrameKind, FrameReader
from accord.supervisor.prompt_line import STATE_ANSWER
from tests.helpers.terminals.outer_terminal import OuterTerminal

ROOT = Path(__file__).resolve().parents[2]
ENV = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": "/nonexistent", "PS1": "$ "}
BASH = ("bash", "--norc", "--noprofile")


def supervised(*command: str, frames: Path | None = None) -> OuterTerminal:
    program = [sys.executable, "-m", "tests.helpers.terminals.relay_program"]
    file = "-" if frames is None else str(frames)
    return OuterTerminal([*program, file, *command], {**ENV, "PYTHONPATH": str(ROOT)}, ROOT)


def output_in(frames: Path) -> bytes:
    """What the host wrote, as the relay read it."""
    found = FrameReader().feed(frames.read_bytes())
    return b"".join(each.payload for each in found if each.kind is FrameKind.OUTPUT)


def test_a_shell_is_shown_byte_for_byte(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    with supervised(*BASH, frames=frames) as terminal:
        terminal.wait_for("$ ")
        assert terminal.is_raw
        terminal.press(
            "printf '\\033[31mred\\033[0m \\xff\\xfe\\000 \\xe2\\x9d\\xaf\\n'; seq 20000\r"
        )
        terminal.wait_for("\n20000\r\n")
        terminal.press("echo ü 日本 $((6*7))\r")
        terminal.wait_for("ü 日本 42")
        terminal.press("exit 7\r")
        assert terminal.wait_for_end() == 7
        assert terminal.is_as_before
        terminal.wait_until(lambda: output_in(frames) == terminal.shown)
    assert b"\xff\xfe\x00" in terminal.shown


@pytest.mark.skipif(shutil.which("vim") is None and "CI" not in os.environ, reason="no vim")
def test_vim_is_shown_byte_for_byte_and_writes_what_was_typed(tmp_path: Path) -> None:
    frames, file = tmp_path / "frames", tmp_path / "text"
    with supervised("vim", "-u", "NONE", "-N", str(file), frames=frames) as terminal:
        terminal.wait_for(b"\x1b[?1049h")
        terminal.press("ione\rtwo ❯\x1b:set number\r")
        terminal.wait_for(b"2 ")
        terminal.press(":wq\r")
        assert terminal.wait_for_end() == 0
        terminal.wait_until(lambda: output_in(frames) == terminal.shown)
    assert file.read_text("utf-8") == "one\ntwo ❯\n"


def test_python_gets_each_key_and_its_end_of_file(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    with supervised(sys.executable, "-q", frames=frames) as terminal:
        terminal.wait_for(">>> ")
        terminal.press("print(len('x' * 3), flush=True)\r")
        terminal.wait_for("3\r\n")
        terminal.wait_for(">>> ")
        terminal.press("\x04")
        assert terminal.wait_for_end() == 0
        terminal.wait_until(lambda: output_in(frames) == terminal.shown)


def test_a_paste_a_mouse_report_and_every_byte_arrive_in_order() -> None:
    reads = (
        "import os,sys,tty; tty.setraw(0); os.write(1,b'ready'); got=b''\n"
        "while len(got)<int(sys.argv[1]): got+=os.read(0,65536)\n"
        "os.write(1,got.hex().encode())"
    )
    sent = b"\x1b[200~" + bytes(range(256)) * 64 + b"\x1b[201~\x1b[<0;3;4M\x1bOP\x03\x1a\x1c"
    with supervised(sys.executable, "-c", reads, str(len(sent))) as terminal:
        terminal.wait_for("ready")
        for at in range(0, len(sent), 700):
            terminal.press(sent[at : at + 700])
        terminal.wait_for_end()
    assert terminal.shown == b"ready" + sent.hex().encode()


def test_a_new_size_reaches_the_program() -> None:
    with supervised(*BASH) as terminal:
        terminal.wait_for("$ ")
        terminal.press("stty size\r")
        terminal.wait_for("40 110")
        terminal.press("trap 'stty size' WINCH; echo $((6*7))\r")
        terminal.wait_for("42\r\n")
        terminal.resize(31, 97)
        os.kill(terminal.pid, signal.SIGWINCH)  # a kernel tells only a foreground group
        terminal.press("\r")
        terminal.wait_for("31 97")


def test_the_keyboard_interrupts_the_program_and_not_the_relay() -> None:
    with supervised(*BASH) as terminal:
        terminal.wait_for("$ ")
        # It answers from where it then waits. A shell that has yet to start its last command can
        # lose the signal, under a relay or not.
        terminal.press("echo $((6*7)); cat\r")
        terminal.wait_for("42\r\n")
        terminal.press("there\r")
        terminal.wait_for("there\r\nthere\r\n")
        terminal.press("\x03")
        terminal.wait_for("^C")
        terminal.wait_for("$ ")
        terminal.press("echo $?\r")
        terminal.wait_for("130")


def test_a_program_that_a_signal_ended_is_reported_as_a_shell_does() -> None:
    with supervised(*BASH) as terminal:
        terminal.wait_for("$ ")
        terminal.press("kill -TERM $$; kill -KILL $$\r")
        assert terminal.wait_for_end() == 128 + signal.SIGKILL
        assert terminal.is_as_before


def test_a_program_that_cannot_be_started_says_so() -> None:
    with supervised("no-such-program-here") as terminal:
        assert terminal.wait_for_end() == 127
        assert b"no-such-program-here cannot be started" in terminal.shown


def test_a_signal_to_the_relay_reaches_the_program() -> None:
    with supervised(
        "sh", "-c", "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    ) as terminal:
        terminal.wait_for("ready")
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.wait_for("got it")
        assert terminal.wait_for_end() == 3


def test_control_z_stops_the_program_and_fg_goes_on_with_it() -> None:
    program = f"{sys.executable} -m tests.helpers.terminals.relay_program -"
    code = "print('up', flush=True); print('got', input(), flush=True)"
    env = {**ENV, "PYTHONPATH": str(ROOT)}
    with OuterTerminal([*BASH, "-i"], env, ROOT) as terminal:
        terminal.wait_for("$ ")
        terminal.press(f'{program} {sys.executable} -c "{code}"\r')
        terminal.wait_for("up\r\n")
        terminal.press("\x1a")
        terminal.wait_for("Stopped")
        terminal.wait_for("$ ")
        terminal.press("echo in $((40+2)) between\r")
        terminal.wait_for("in 42 between")
        terminal.press("fg\r")
        terminal.wait_until(lambda: terminal.is_raw)
        terminal.press("hello\r")
        terminal.wait_for("got hello")
        terminal.wait_for("$ ")
        terminal.press("exit\r")
        terminal.wait_for_end()


def test_the_question_about_states_is_answered_between_keys() -> None:
    code = (
        "import os,tty; tty.setraw(0); os.write(1,b'\\x1b]75'); os.write(1,b'01;?\\x1b\\\\');"
        "got=b''\nwhile len(got)<" + str(len(STATE_ANSWER)) + ": got+=os.read(0,99)\n"
        "os.write(1,got.hex().encode())"
    )
    with supervised(sys.executable, "-c", code) as terminal:
        terminal.wait_for_end()
    assert STATE_ANSWER.hex().encode() in terminal.shown


def test_a_terminal_that_is_closed_ends_the_program() -> None:
    with supervised(
        "sh", "-c", "trap 'exit 0' HUP; echo ready; while :; do sleep 0.05; done"
    ) as terminal:
        terminal.wait_for("ready")
        os.kill(terminal.pid, signal.SIGHUP)
        assert terminal.wait_for_end() == 0
