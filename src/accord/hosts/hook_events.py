"""Which events of a host run our hook, and what each of them is for us.

One row for each host. A configuration names the host's events; our hook gets our own name of the
event as an argument, so that it does not depend on what the host sends.
"""

from collections.abc import Mapping
from typing import NamedTuple

PRE_TOOL = "pre-tool"
POST_TOOL = "post-tool"
PROMPT = "prompt"
STOP = "stop"
SESSION_START = "session-start"
SESSION_END = "session-end"
SUBAGENT_START = "subagent-start"
SUBAGENT_STOP = "subagent-stop"

CLAUDE_CODE, CODEX, GEMINI, CURSOR = "claude-code", "codex", "gemini", "cursor"


# The tool that runs shell commands, by the name that a host's hook gives it.
SHELL_TOOLS: Mapping[str, str] = {
    CLAUDE_CODE: "Bash",
    CODEX: "Bash",
    GEMINI: "run_shell_command",
    CURSOR: "Shell",
}
# What our gate says of a call that no approval would let pass.
REFUSED_OUTRIGHT = "agents may not do this"


class HookEvent(NamedTuple):
    """An event by the host's name and by ours."""

    name: str
    event: str

    @property
    def is_gate(self) -> bool:
        """Whether the host waits for our decision."""
        return self.event == PRE_TOOL


HOOK_EVENTS: Mapping[str, tuple[HookEvent, ...]] = {
    CLAUDE_CODE: (
        HookEvent("PreToolUse", PRE_TOOL),
        HookEvent("PostToolUse", POST_TOOL),
        HookEvent("PostToolUseFailure", POST_TOOL),
        HookEvent("UserPromptSubmit", PROMPT),
        HookEvent("Stop", STOP),
        HookEvent("SubagentStart", SUBAGENT_START),
        HookEvent("SubagentStop", SUBAGENT_STOP),
        HookEvent("SessionStart", SESSION_START),
        HookEvent("SessionEnd", SESSION_END),
    ),
    CODEX: (
        HookEvent("PreToolUse", PRE_TOOL),
        HookEvent("PostToolUse", POST_TOOL),
        HookEvent("UserPromptSubmit", PROMPT),
        HookEvent("Stop", STOP),
        HookEvent("SubagentStart", SUBAGENT_START),
        HookEvent("SubagentStop", SUBAGENT_STOP),
        HookEvent("SessionStart", SESSION_START),
        HookEvent("SessionEnd", SESSION_END),
    ),
    GEMINI: (
        HookEvent("BeforeTool", PRE_TOOL),
        HookEvent("AfterTool", POST_TOOL),
        HookEvent("BeforeAgent", PROMPT),
        HookEvent("AfterAgent", STOP),
        HookEvent("SessionStart", SESSION_START),
        HookEvent("SessionEnd", SESSION_END),
    ),
    CURSOR: (
        HookEvent("preToolUse", PRE_TOOL),
        HookEvent("postToolUse", POST_TOOL),
        HookEvent("postToolUseFailure", POST_TOOL),
        HookEvent("beforeSubmitPrompt", PROMPT),
        HookEvent("afterAgentResponse", STOP),
        HookEvent("subagentStart", SUBAGENT_START),
        HookEvent("subagentStop", SUBAGENT_STOP),
        HookEvent("sessionStart", SESSION_START),
        HookEvent("sessionEnd", SESSION_END),
    ),
}
