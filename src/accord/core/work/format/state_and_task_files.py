"""Pact's other files: STATE.yml, managed blocks in project files, task files."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.state import Feature, Seat, Task, Work
from accord.core.work.vocabulary import PROTOCOL_VERSION, TaskStatus

BLOCK_BEGIN = "<!-- pact:begin (managed by accord pact init — edit outside this block) -->"
BLOCK_END = "<!-- pact:end -->"
_BEGIN_MARKER, _END_MARKER = "pact:begin", "pact:end"
_FRONTMATTER = re.compile(r"---\r?\n(.*?)^---\r?$", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"([a-z]+):[ \t]*(.*?)[ \t]*\r?", re.ASCII)
_STATUS = {status: status.value for status in TaskStatus}
_DECISION_FIELDS = ("id", "feature", "owner", "reviewer")


def render_state_yml(work: Work) -> str:
    """`STATE.yml`, byte for byte as existing tools write it, because their `validate` compares."""
    text = "\n".join([*_state_lines(work), ""])
    # A name with a line break could forge a line. Counting lines is faster than checking names.
    return (
        text
        if text.count("\n") == _count_lines(work)
        else "\n".join([*_state_lines(_with_single_line_names(work)), ""])
    )


def _count_lines(work: Work) -> int:
    tasks = len(work.tasks) * 6 + sum(bool(task.deps) for task in work.tasks.values())
    return 4 + len(work.seats) + len(work.features) * 4 + tasks


def _with_single_line_names(work: Work) -> Work:
    """The work with line breaks in names replaced; only needed for hostile logs."""
    seats = tuple(
        replace(seat, id=_one_line(seat.id), roles=tuple(map(_one_line, seat.roles)))
        for seat in work.seats
    )
    features = {
        key: replace(feature, id=_one_line(feature.id), branch=_one_line(feature.branch))
        for key, feature in work.features.items()
    }
    tasks = {
        key: replace(
            task,
            id=_one_line(task.id),
            owner=_one_line(task.owner),
            reviewer=_one_line(task.reviewer),
            spec=_one_line(task.spec),
            deps=tuple(map(_one_line, task.deps)),
        )
        for key, task in work.tasks.items()
    }
    project = _one_line(work.project)
    return replace(work, project=project, seats=seats, features=features, tasks=tasks)


def _one_line(name: str) -> str:
    return name.replace("\n", " ")


def _state_lines(work: Work) -> Iterator[str]:
    yield f"project: {work.project or 'unknown'}"
    yield "working_tree_holder: null"
    yield "agents:"
    for seat in work.seats:
        yield f"  - {{ id: {seat.id}, roles: [{', '.join(seat.roles)}] }}"
    yield "features:"
    for feature in work.features.values():
        yield _feature_lines(feature)
        yield from (_task_lines(work.tasks[id]) for id in feature.tasks)


def _feature_lines(feature: Feature) -> str:
    status = "shipped" if feature.shipped else "in_progress"
    return f"  - id: {feature.id}\n    branch: {feature.branch}\n    status: {status}\n    tasks:"


def _task_lines(task: Task) -> str:
    # Existing tools show `changes_requested` until the next checkpoint.
    status = _STATUS[TaskStatus.CHANGES_REQUESTED if task.returned else task.status]
    evidence = task.evidence.replace("\n", " ").replace("\t", " ") if task.evidence else "null"
    deps = f"\n        deps: [{', '.join(task.deps)}]" if task.deps else ""
    return (
        f"      - id: {task.id}\n        owner: {task.owner}\n        status: {status}\n"
        f"        reviewer: {task.reviewer}\n        spec: {task.spec}\n"
        f"        evidence: {evidence}{deps}"
    )


# Managed blocks


def with_managed_block(text: str, body: str) -> str:
    """The text with this block at its end, replacing older blocks; idempotent."""
    check_no_markers(body)
    rest = "\n".join(lines_outside_blocks(text)).rstrip("\n \t\r")
    block = f"{BLOCK_BEGIN}\n{body.strip()}\n{BLOCK_END}\n"
    return f"{rest}\n\n{block}" if rest else block


def check_no_markers(text: str) -> None:
    """Refuse text with block markers, which would break the block it is written into."""
    if _BEGIN_MARKER in text or _END_MARKER in text:
        raise Refused(
            Reason.MALFORMED, "The project's name must not contain `pact:begin` or `pact:end`"
        )


def lines_outside_blocks(text: str) -> Iterator[str]:
    """The lines outside managed blocks; a block without an end counts as text."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        if _BEGIN_MARKER in lines[index]:
            ends = (
                end_index
                for end_index in range(index, len(lines))
                if _END_MARKER in lines[end_index]
            )
            if (end := next(ends, None)) is not None:
                index = end + 1
                continue
        yield lines[index]
        index += 1


def render_charter(project: str, seats: Sequence[Seat]) -> str:
    """The managed block of PROJECT.md."""
    roster = "\n".join(
        f"- `{seat.id}` — roles: {', '.join(seat.roles)} — entry: {seat.entry}" for seat in seats
    )
    return f"""# {project} — Pact Charter (protocol_version: {PROTOCOL_VERSION})

This project follows the Pact protocol v{PROTOCOL_VERSION}. The log `.pact/log.jsonl` is the
source of truth; `.pact/STATE.yml` is derived from it and can be rebuilt.

## Roles

- orchestrator: assigns tasks and merges features
- worker: does tasks and submits evidence
- reviewer: accepts submitted work, or requests changes
- human: decides whatever the others cannot

## The two rules (the pact)

1. Nobody accepts their own work: a task's owner and reviewer are different seats, and only the
   reviewer accepts it.
2. A feature is merged only once all its tasks are accepted.

## Seats

{roster}

## Commands

`accord pact help` explains them; `source .pact/bin/pact.sh` defines them as `pact_<verb>`."""


def render_entry_block(seat: Seat) -> str:
    """The managed block of a seat's entry file."""
    roles = ",".join(seat.roles)
    return f"""## Pact: you work here as `{seat.id}`

Start each session with these lines. If your shell does not keep variables between commands, put
`PACT_AGENT_ID={seat.id}` before each command.

```bash
export PACT_AGENT_ID={seat.id}
source .pact/bin/pact.sh && pact_join {seat.id} --roles {roles}
```

The rules are in `.pact/PROJECT.md`, the state of the work in `.pact/STATE.yml`, and each task in
the file that its `spec` names. `pact_watch` shows what waits for you, `pact_help` explains all."""


# Task files


def render_task_file(task: Task) -> str:
    """The initial content of a task's file."""
    front = "\n".join(f"{name}: {getattr(task, name)}" for name in _DECISION_FIELDS)
    return f"""---
{front}
---
## Spec

What has to be done.

## Acceptance

- [ ] How to check that it is done.

## Handoff log
"""


def parse_frontmatter(text: str) -> dict[str, str]:
    """The `key: value` lines of a task file's front matter; empty if there is none."""
    if not (match := _FRONTMATTER.match(text)):
        return {}
    pairs = (_PAIR.fullmatch(line) for line in match[1].split("\n"))
    return {pair[1]: pair[2].strip("'\"") for pair in pairs if pair}


def contradictions_with_log(task: Task, text: str) -> list[str]:
    """Where a task's file contradicts the log, which wins (PACT 3.4)."""
    front = parse_frontmatter(text)
    return [
        f"{name} is {front[name]} in the file, but {getattr(task, name)} in the log"
        for name in _DECISION_FIELDS
        if name in front and front[name] != getattr(task, name)
    ]


def with_union_attributes(text: str) -> str:
    """`.gitattributes` with union merges for the ledger; existing lines are kept."""
    configured = {
        line.split()[0] for line in text.splitlines() if "merge=" in line and line.split()
    }
    required = [f".pact/{name} merge=union" for name in ("log.jsonl", "STATE.yml")]
    missing = [line for line in required if line.split()[0] not in configured]
    if not missing:
        return text
    rest = text if not text or text.endswith("\n") else f"{text}\n"
    return rest + "".join(f"{line}\n" for line in missing)
