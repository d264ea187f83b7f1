"""What the tools of each host do: one row for each that runs, writes, reads or fetches.

The policy knows the tools that only change the host's own state, and gates every other one.
"""

from collections.abc import Mapping

from accord.core.policy.reported_call import CallKind
from accord.hosts.hook_events import CLAUDE_CODE, CODEX, CURSOR, GEMINI, SHELL_TOOLS

MCP_PREFIXES = ("mcp__", "mcp_", "MCP:")
# The name that `accord connect` gives our own server; its tools answer for themselves.
OWN_SERVER = "accord"
OWN_TOOLS = frozenset(
    {
        *("create_thread", "get_thread", "post_message", "read_messages", "ack_read"),
        *("update_thread_status", "summarize_thread", "heartbeat_session", "trigger_participant"),
        *("pvp_send", "pvp_read", "propose_and_wait", "report_result", "whats_waiting"),
    }
)
# What hosts call them: Claude Code and Codex, Gemini CLI, Cursor.
OWN_NAMES = frozenset(
    name
    for tool in OWN_TOOLS
    for name in (f"mcp__{OWN_SERVER}__{tool}", f"mcp_{OWN_SERVER}_{tool}", f"MCP:{tool}")
)


KIND_BY_TOOL: Mapping[str, Mapping[str, CallKind]] = {
    CLAUDE_CODE: {
        SHELL_TOOLS[CLAUDE_CODE]: CallKind.SHELL,
        **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), CallKind.WRITE),
        **dict.fromkeys(("Read", "Glob", "Grep", "LS", "NotebookRead"), CallKind.READ),
        "WebFetch": CallKind.FETCH,
    },
    CODEX: {
        SHELL_TOOLS[CODEX]: CallKind.SHELL,
        "apply_patch": CallKind.PATCH,
        "view_image": CallKind.READ,
    },
    GEMINI: {
        SHELL_TOOLS[GEMINI]: CallKind.SHELL,
        **dict.fromkeys(("write_file", "replace"), CallKind.WRITE),
        **dict.fromkeys(
            ("read_file", "read_many_files", "list_directory", "glob", "grep_search"),
            CallKind.READ,
        ),
        "search_file_content": CallKind.READ,
    },
    CURSOR: {
        SHELL_TOOLS[CURSOR]: CallKind.SHELL,
        **dict.fromkeys(("Write", "Edit", "StrReplace"), CallKind.WRITE),
        **dict.fromkeys(("Read", "Grep", "Glob", "LS"), CallKind.READ),
    },
}
# Words for people that a host shows and does not run; a model writes them anew at each try.
CAPTIONS: Mapping[str, Mapping[str, str]] = {
    CLAUDE_CODE: {"Bash": "description"},
    GEMINI: {"run_shell_command": "description"},
    CURSOR: {"Shell": "description"},
}
# Arguments with which a model chooses where its command runs, instead of the directory that the
# event names. `directory` is what older versions of Gemini CLI call it; Cursor's is documented.
DIRECTORIES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    GEMINI: {"run_shell_command": ("dir_path", "directory")},
    CURSOR: {"Shell": ("working_directory",)},
}
