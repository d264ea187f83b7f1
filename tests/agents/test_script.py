"""Scripts: what is said to which prompt, and how risky a command looks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord.agents.caution import Judgement, judge, stricter
from accord.agents.loop import Outcome
from accord.agents.script import Script, ScriptError, Step, load
from accord.agents.scripted import filled, proposal
from accord.core.room.state import Category, Risk
from tests.spec import proves

TOML = """
[[reply]]
when = "Status"

[[reply.steps]]
say = "I look."

[[reply.steps]]
propose = "shell"
arguments = { argv = ["git", "status"] }
description = "See what has changed"
risk = "low"
granted = [{ say = "It printed: {output}" }]
rejected = [{ say = "Then not: {reason}" }]

[[reply]]
steps = [{ say = "Hm?" }]
"""
JSON = '{"reply": [{"steps": [{"say": "Hm?"}]}]}'


def written(folder: Path, text: str, name: str = "script.toml") -> Script:
    (folder / name).write_text(text)
    return load(folder / name)


def test_the_first_reply_that_fits_is_played(tmp_path: Path) -> None:
    script = written(tmp_path, TOML)

    look, propose = script.answer("What is the STATUS?")
    assert look.say == "I look."
    assert propose.propose == "shell"
    assert propose.granted == (Step(say="It printed: {output}"),)
    assert script.answer("Hello") == (Step(say="Hm?"),)


def test_json_will_do_too(tmp_path: Path) -> None:
    assert written(tmp_path, JSON, "script.json").answer("x") == (Step(say="Hm?"),)


def test_where_nothing_fits_it_says_so() -> None:
    assert Script(reply=()).answer("x") == (Step(say="I have no line for that."),)


@pytest.mark.parametrize(
    "text",
    [
        "reply = 1",
        "[[reply]]\nsteps = [{}]",
        '[[reply]]\nsteps = [{ say = "a", propose = "b" }]',
        '[[reply]]\nsteps = [{ say = "a", typo = 1 }]',
        '[[reply]]\nsteps = [{ propose = "a", risk = "some" }]',
        "not toml",
        "reply = " + "[" * 2000 + "]" * 2000,
    ],
)
def test_what_is_no_script_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"script\.toml"):
        written(tmp_path, text)


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"none\.toml cannot be read"):
        load(tmp_path / "none.toml")


def test_lines_are_filled_with_what_happened() -> None:
    assert filled("{output}: {reason}", Outcome(ran=True, output="a", reason="b")) == "a: b"


@proves("PVP-20.4-3")
@pytest.mark.parametrize(
    ("argv", "category", "risk"),
    [
        ("ls -la", Category.SHELL_EXECUTE, Risk.LOW),
        ("git status", Category.SHELL_EXECUTE, Risk.LOW),
        ("git commit -m x", Category.SHELL_EXECUTE, Risk.MEDIUM),
        ("make test", Category.SHELL_EXECUTE, Risk.MEDIUM),
        ("git fetch", Category.NETWORK_REQUEST, Risk.MEDIUM),
        ("git push", Category.NETWORK_REQUEST, Risk.HIGH),
        ("git -c core.pager=evil log", Category.SHELL_EXECUTE, Risk.HIGH),
        ("git", Category.SHELL_EXECUTE, Risk.MEDIUM),
        ("/bin/rm -rf /", Category.FILE_DELETE, Risk.HIGH),
        ("git clean -fdx", Category.FILE_DELETE, Risk.HIGH),
        ("ssh host", Category.NETWORK_REQUEST, Risk.HIGH),
        ("bash -c ls", Category.SHELL_EXECUTE, Risk.HIGH),
        ("env ls", Category.SHELL_EXECUTE, Risk.HIGH),
        ("sudo ls", Category.SHELL_EXECUTE, Risk.CRITICAL),
    ],
)
def test_a_command_is_judged_by_its_program(argv: str, category: Category, risk: Risk) -> None:
    assert judge(argv.split()) == (category, risk)


@proves("PVP-20.4-3")
def test_what_is_said_of_a_command_can_only_make_it_worse() -> None:
    mild = Judgement(Category.SHELL_EXECUTE, Risk.LOW)
    grave = Judgement(Category.FILE_DELETE, Risk.HIGH)

    assert stricter(mild, grave) == grave
    assert stricter(grave, mild) == grave


def test_a_script_that_plays_down_a_command_is_corrected() -> None:
    agent: Any = SimpleNamespace(session=SimpleNamespace(me="claude"))
    step = Step(propose="shell", arguments={"argv": ["rm", "-r", "docs"]}, risk=Risk.LOW)

    made = proposal(agent, step)

    assert (made.category, made.risk_level) == (Category.FILE_DELETE, Risk.HIGH)
    other = proposal(agent, Step(propose="deploy", risk=Risk.LOW, category=Category.DEPLOY))
    assert (other.category, other.risk_level) == (Category.DEPLOY, Risk.LOW)
    odd = proposal(agent, Step(propose="shell", arguments={"command": "rm"}, risk=Risk.LOW))
    assert odd.risk_level is Risk.LOW


@pytest.mark.parametrize(
    "argv",
    ["./ls", "/tmp/cat x", "bin/make", "git diff --output=x", "git log --outpu=x", "git show -ox"],
)
def test_what_may_be_another_program_or_writes_is_not_known_to_be_harmless(argv: str) -> None:
    assert judge(argv.split()).risk is Risk.HIGH
