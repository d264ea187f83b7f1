"""An agent behavior that follows a script, for demonstrations and tests."""

import asyncio
from pathlib import Path

from accord.agents import shell
from accord.agents.command_risk import RiskJudgement, judge_command, stricter_judgement
from accord.agents.loop import Agent, Prompt, ToolOutcome
from accord.agents.script import Script, ScriptStep
from accord.agents.tools.commit_tree import with_commit_tree
from accord.agents.worktrees import FindWorkdir
from accord.core.kernel.command_line import with_lines
from accord.core.room.approval.tool_proposals import ToolPropose

SHELL_TOOL = "shell"


class ScriptedBehavior:
    """Plays the first reply of a script that matches the prompt.

    Its calls run in the directory that `find_workdir` gives for the fork, else in the agent's.
    """

    def __init__(self, script: Script, find_workdir: FindWorkdir | None = None) -> None:
        self._script = script
        self._find_workdir = find_workdir

    async def answer(self, agent: Agent, prompt: Prompt) -> None:
        """Play the steps in order; after a proposal, those for its outcome come first."""
        steps, outcome = list(self._script.steps_for_prompt(prompt.content)), ToolOutcome(ran=False)
        find = self._find_workdir
        workdir = await find(prompt.fork) if find else agent.workdir
        while steps:
            await agent.wait_while_paused()
            for amendment in prompt.news():
                steps = list(self._script.steps_for_amendment(amendment) or steps)
            step = steps.pop(0)
            if step.propose is not None:
                body = await asyncio.to_thread(build_proposal, agent, step, workdir)
                outcome = await agent.propose(
                    body, prompt, execute_early=step.hasty, workdir=workdir
                )
                steps = [*(step.granted if outcome.ran else step.rejected), *steps]
            elif step.share is not None:
                await agent.share(prompt, step.share, fill_placeholders(step.text, outcome))
            else:
                await agent.say(
                    prompt, fill_placeholders(step.say or "", outcome), more=bool(steps)
                )


def fill_placeholders(text: str, outcome: ToolOutcome) -> str:
    """The text with {output} and {reason} replaced."""
    return text.replace("{output}", outcome.output).replace("{reason}", outcome.reason)


def build_proposal(agent: Agent, step: ScriptStep, workdir: Path) -> ToolPropose:
    """The proposal of a step, with the risk of its command even if the script declares less."""
    category, risk = judge_step(step)
    arguments = step.arguments
    if step.propose == SHELL_TOOL:
        arguments = with_commit_tree(with_lines(arguments), workdir)
    return ToolPropose(
        tool_name=step.propose or "",
        arguments=arguments,
        agent=agent.session.me,
        risk_level=risk,
        description=step.description,
        requires_approval=False,
        category=category,
    )


def judge_step(step: ScriptStep) -> RiskJudgement:
    """The category and risk of a step: the declared or the judged one, whichever is higher."""
    declared = RiskJudgement(step.category, step.risk)
    if step.propose != SHELL_TOOL:
        return declared
    try:
        return stricter_judgement(declared, judge_command(shell.parse_call(step.arguments).argv))
    except shell.InvalidCommandError:
        return declared
