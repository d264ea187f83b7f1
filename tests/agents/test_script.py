"""Scripts choose replies by prompt, and commands are judged by their risk."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord.agents.command_risk import RiskJudgement, judge_command, stricter_judgement
from accord.agents.loop import ToolOutcome
from accord.agents.script import Script, ScriptError, ScriptStep, load_script
from accord.agents.scripted_behavior import build_proposal, fill_placeholders
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
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
    return load_script(folder / name)


def test_first_matching_reply_is_used(tmp_path: Path) -> None:
    script = written(tmp_path, TOML)

    look, propose = script.steps_for_prompt("What is the STATUS?")
    assert look.say == "I look."
    assert propose.propose == "shell"
    assert propose.granted == (ScriptStep(say="It printed: {output}"),)
    assert script.steps_for_prompt("Hello") == (ScriptStep(say="Hm?"),)


def test_script_can_be_json(tmp_path: Path) -> None:
    assert written(tmp_path, JSON, "script.json").steps_for_prompt("x") == (ScriptStep(say="Hm?"),)


def test_prompt_without_matching_reply_gets_a_default_line() -> None:
    assert Script(reply=()).steps_for_prompt("x") == (
        ScriptStep(say="My script has no reply to that."),
    )


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
def test_invalid_script_raises_an_error_naming_the_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"script\.toml"):
        written(tmp_path, text)


def test_missing_script_raises_an_error_naming_the_file(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"none\.toml cannot be read"):
        load_script(tmp_path / "none.toml")


def test_placeholders_are_filled_with_output_and_reason() -> None:
    assert (
        fill_placeholders("{output}: {reason}", ToolOutcome(ran=True, output="a", reason="b"))
        == "a: b"
    )


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
def test_command_risk_depends_on_its_program(argv: str, category: Category, risk: Risk) -> None:
    assert judge_command(argv.split()) == (category, risk)


@proves("PVP-20.4-3")
def test_declared_risk_can_raise_but_not_lower_the_judged_risk() -> None:
    mild = RiskJudgement(Category.SHELL_EXECUTE, Risk.LOW)
    grave = RiskJudgement(Category.FILE_DELETE, Risk.HIGH)

    assert stricter_judgement(mild, grave) == grave
    assert stricter_judgement(grave, mild) == grave


def test_proposal_raises_the_risk_a_script_understates() -> None:
    agent: Any = SimpleNamespace(session=SimpleNamespace(me="claude"))
    step = ScriptStep(propose="shell", arguments={"argv": ["rm", "-r", "docs"]}, risk=Risk.LOW)

    made = build_proposal(agent, step, Path())

    assert (made.category, made.risk_level) == (Category.FILE_DELETE, Risk.HIGH)
    assert made.arguments == {
        "argv": ["rm", "-r", "docs"],
        "command": "rm -r docs",
        "full_command": "rm -r docs",
    }
    other = build_proposal(
        agent, ScriptStep(propose="deploy", risk=Risk.LOW, category=Category.DEPLOY), Path()
    )
    assert (other.category, other.risk_level) == (Category.DEPLOY, Risk.LOW)
    odd = build_proposal(
        agent, ScriptStep(propose="shell", arguments={"command": "rm"}, risk=Risk.LOW), Path()
    )
    assert odd.risk_level is Risk.LOW


@pytest.mark.parametrize(
    "argv",
    ["./ls", "/tmp/cat x", "bin/make", "git diff --output=x", "git log --outpu=x", "git show -ox"],
)
def test_paths_and_writing_options_are_not_judged_read_only(argv: str) -> None:
    assert judge_command(argv.split()).risk is Risk.HIGH
