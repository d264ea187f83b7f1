"""A mind that follows a script: for demonstrations and tests, where every word is known."""

from accord.agents import shell
from accord.agents.caution import Judgement, judge, stricter
from accord.agents.loop import Agent, Outcome, Prompt
from accord.agents.script import Script, Step
from accord.core.room.tools import ToolPropose


class Scripted:
    """Plays the first reply that fits a prompt."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def answer(self, agent: Agent, prompt: Prompt) -> None:
        """The steps in their order; what follows a decision depends on it."""
        todo, last = list(self._script.answer(prompt.content)), Outcome(ran=False)
        while todo:
            await agent.breathe()
            for amendment in prompt.news():
                todo = list(self._script.amended(amendment) or todo)
            step = todo.pop(0)
            if step.propose is not None:
                last = await agent.propose(proposal(agent, step), prompt, hasty=step.hasty)
                todo = [*(step.granted if last.ran else step.rejected), *todo]
            elif step.share is not None:
                await agent.share(prompt, step.share, filled(step.text, last))
            else:
                await agent.say(prompt, filled(step.say or "", last), more=bool(todo))


def filled(text: str, last: Outcome) -> str:
    """The line with what happened put in."""
    return text.replace("{output}", last.output).replace("{reason}", last.reason)


def proposal(agent: Agent, step: Step) -> ToolPropose:
    """The step as the room hears it, as risky as it looks even if the script says less."""
    category, risk = judged(step)
    return ToolPropose(
        tool_name=step.propose or "",
        arguments=step.arguments,
        agent=agent.session.me,
        risk_level=risk,
        description=step.description,
        requires_approval=False,
        category=category,
    )


def judged(step: Step) -> Judgement:
    """What kind of act it is and how risky."""
    said = Judgement(step.category, step.risk)
    if step.propose != "shell":
        return said
    try:
        return stricter(said, judge(shell.call(step.arguments).argv))
    except shell.NotACommandError:
        return said
