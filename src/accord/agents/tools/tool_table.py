"""The tools that a model is offered: name, purpose, arguments, and what kind of call each is."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from accord.agents.providers.model import ToolSpec
from accord.core.policy.reported_call import CallKind

TASKS_TOOL = "update_tasks"
TASK_STATUSES = ("pending", "in_progress", "completed")


class ToolRow(NamedTuple):
    """One tool; `kind` is None for one that only says something in the session."""

    spec: ToolSpec
    kind: CallKind | None


def _object(required: Collection[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(required),
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


PATH = _text("path, relative to the work directory")
GLOB = _text("only files whose name matches, such as *.py")
TASK = _object(
    ("id", "title", "status"),
    id=_text("stays the same while the task exists"),
    title=_text("what is to be done"),
    status={"type": "string", "enum": list(TASK_STATUSES)},
)
ROWS = (
    ToolRow(
        ToolSpec(
            "shell",
            "Run a program in the work directory. argv is the argument array; there is no shell, "
            "so no pipes, redirections, globs or variables. Input is empty. People see the exact "
            "words and may have to approve them first.",
            _object(
                ("argv",),
                argv={"type": "array", "items": {"type": "string"}, "minItems": 1},
                timeout_seconds={"type": "number", "exclusiveMinimum": 0},
            ),
        ),
        CallKind.SHELL,
    ),
    ToolRow(
        ToolSpec(
            "read_file",
            "Read a text file, or some of its lines.",
            _object(
                ("path",), path=PATH, offset=_number("first line"), limit=_number("number of lines")
            ),
        ),
        CallKind.READ,
    ),
    ToolRow(
        ToolSpec(
            "list_files",
            "List the files below a directory.",
            _object((), path=PATH, glob=GLOB),
        ),
        CallKind.READ,
    ),
    ToolRow(
        ToolSpec(
            "search_files",
            "Search files for lines that match an extended regular expression.",
            _object(("pattern",), pattern=_text("what to search for"), path=PATH, glob=GLOB),
        ),
        CallKind.READ,
    ),
    ToolRow(
        ToolSpec(
            "write_file",
            "Write a whole text file; directories are made as needed.",
            _object(("path", "content"), path=PATH, content=_text("the whole content")),
        ),
        CallKind.WRITE,
    ),
    ToolRow(
        ToolSpec(
            "edit_file",
            "Replace a text that occurs exactly once in a file; with replace_all, wherever it is.",
            _object(
                ("path", "old_string", "new_string"),
                path=PATH,
                old_string=_text("the text to replace, exactly as it is in the file"),
                new_string=_text("the text to put there"),
                replace_all={"type": "boolean"},
            ),
        ),
        CallKind.WRITE,
    ),
    ToolRow(
        ToolSpec(
            "apply_patch",
            "Change several files at once. The patch begins with *** Begin Patch and ends with *** "
            "End Patch; between them are sections *** Add File: PATH (every line begins with +), "
            "*** Update File: PATH (chunks after @@, lines begin with a space, - or +) and *** "
            "Delete File: PATH.",
            _object(("patch",), patch=_text("the patch")),
        ),
        CallKind.PATCH,
    ),
    ToolRow(
        ToolSpec(
            TASKS_TOOL,
            "Show everybody in the session the goal and the tasks, and how far they are.",
            _object(
                ("goal", "tasks"),
                goal=_text("what all tasks are for"),
                tasks={"type": "array", "items": TASK, "maxItems": 100},
            ),
        ),
        None,
    ),
)
TOOLS: Mapping[str, ToolRow] = {row.spec.name: row for row in ROWS}


def offered_tools(allowed: Collection[str] | None) -> tuple[ToolSpec, ...]:
    """The tools for a prompt; None allows all. The task list is no tool that acts."""
    return tuple(
        row.spec for row in ROWS if allowed is None or row.spec.name in allowed or row.kind is None
    )
