"""Pact's other files: STATE.yml byte for byte, managed blocks, task files."""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.state import Feature, Seat, Task, Work
from accord.core.work.words import PROTOCOL, Status

BEGIN = "<!-- pact:begin (managed by accord pact init — edit outside this block) -->"
END = "<!-- pact:end -->"
_BEGIN, _END = "pact:begin", "pact:end"
_FRONT = re.compile(r"---\r?\n(.*?)^---\r?$", re.DOTALL | re.MULTILINE)
_PAIR = re.compile(r"([a-z]+):[ \t]*(.*?)[ \t]*\r?", re.ASCII)
_STATUS = {status: status.value for status in Status}
_DECISION_FIELDS = ("id", "feature", "owner", "reviewer")


def state_yml(work: Work) -> str:
    """`STATE.yml` as existing tools write it; their `validate` compares bytes."""
    text = "\n".join([*_state(work), ""])
    # No name in a log may forge a line. All at once, since one by one takes as long as the rest.
    return text if text.count("\n") == _lines(work) else "\n".join([*_state(_flat(work)), ""])


def _lines(work: Work) -> int:
    tasks = len(work.tasks) * 6 + sum(bool(task.deps) for task in work.tasks.values())
    return 4 + len(work.seats) + len(work.features) * 4 + tasks


def _flat(work: Work) -> Work:
    """The same with each name on one line; no tool gives names that need it."""
    seats = tuple(
        replace(seat, id=_one_line(seat.id), roles=tuple(map(_one_line, seat.roles)))
        for seat in work.seats
    )
    features = {
        key: replace(each, id=_one_line(each.id), branch=_one_line(each.branch))
        for key, each in work.features.items()
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


def _state(work: Work) -> Iterator[str]:
    yield f"project: {work.project or 'unknown'}"
    yield "working_tree_holder: null"
    yield "agents:"
    for seat in work.seats:
        yield f"  - {{ id: {seat.id}, roles: [{', '.join(seat.roles)}] }}"
    yield "features:"
    for feature in work.features.values():
        yield _feature(feature)
        yield from (_task(work.tasks[id]) for id in feature.tasks)


def _feature(feature: Feature) -> str:
    status = "shipped" if feature.shipped else "in_progress"
    return f"  - id: {feature.id}\n    branch: {feature.branch}\n    status: {status}\n    tasks:"


def _task(task: Task) -> str:
    # Existing tools show that changes were asked for until something new is shown.
    status = _STATUS[Status.CHANGES_REQUESTED if task.returned else task.status]
    evidence = task.evidence.replace("\n", " ").replace("\t", " ") if task.evidence else "null"
    deps = f"\n        deps: [{', '.join(task.deps)}]" if task.deps else ""
    return (
        f"      - id: {task.id}\n        owner: {task.owner}\n        status: {status}\n"
        f"        reviewer: {task.reviewer}\n        spec: {task.spec}\n"
        f"        evidence: {evidence}{deps}"
    )


# Managed blocks


def managed(text: str, body: str) -> str:
    """The text with this block at its end, in the place of every older one; twice is once."""
    unmarked(body)
    rest = "\n".join(outside(text)).rstrip("\n \t\r")
    block = f"{BEGIN}\n{body.strip()}\n{END}\n"
    return f"{rest}\n\n{block}" if rest else block


def unmarked(text: str) -> None:
    """Refuse what would end a block, or begin one, where it is written into one."""
    if _BEGIN in text or _END in text:
        raise Refused(Why.MALFORMED, "The project's name must not contain the block's markers")


def outside(text: str) -> Iterator[str]:
    """The lines that no block holds; a block without an end is left alone."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if _BEGIN in lines[at]:
            ends = (place for place in range(at, len(lines)) if _END in lines[place])
            if (end := next(ends, None)) is not None:
                at = end + 1
                continue
        yield lines[at]
        at += 1


def charter(project: str, seats: Sequence[Seat]) -> str:
    """The block in PROJECT.md."""
    roster = "\n".join(
        f"- `{seat.id}` — roles: {', '.join(seat.roles)} — entry: {seat.entry}" for seat in seats
    )
    return f"""# {project} — Pact Charter (protocol_version: {PROTOCOL})

This project is worked on by the Pact protocol v{PROTOCOL}. The log `.pact/log.jsonl` is the truth;
`.pact/STATE.yml` is made from it and may be made again.

## Roles

- orchestrator: assigns tasks and merges features
- worker: does tasks and shows evidence
- reviewer: accepts what was shown, or says what is missing
- human: decides everything that the others cannot

## The two rules (the pact)

1. Nobody accepts their own work: a task's owner and reviewer are different seats, and only the
   reviewer accepts it.
2. A feature is merged when every one of its tasks is accepted, and not before.

## Seats

{roster}

## Commands

`accord pact help` explains them; `source .pact/bin/pact.sh` gives them as `pact_<verb>`."""


def welcome(seat: Seat) -> str:
    """The block in a seat's entry file."""
    roles = ",".join(seat.roles)
    return f"""## Pact: you work here as `{seat.id}`

Begin each session with these lines. Where a shell forgets variables between commands, put
`PACT_AGENT_ID={seat.id}` before each command.

```bash
export PACT_AGENT_ID={seat.id}
source .pact/bin/pact.sh && pact_join {seat.id} --roles {roles}
```

The rules are in `.pact/PROJECT.md`, the state of the work in `.pact/STATE.yml`, the task itself in
the file that its `spec` names. `pact_watch` tells what waits for you, `pact_help` explains all."""


# Task files


def task_file(task: Task) -> str:
    """What a new task's file holds."""
    front = "\n".join(f"{name}: {getattr(task, name)}" for name in _DECISION_FIELDS)
    return f"""---
{front}
---
## Spec

What is to be done.

## Acceptance

- [ ] How one sees that it is done.

## Handoff log
"""


def frontmatter(text: str) -> dict[str, str]:
    """The plain `key: value` lines at the head of a task's file; none is fine."""
    if not (found := _FRONT.match(text)):
        return {}
    pairs = (_PAIR.fullmatch(line) for line in found[1].split("\n"))
    return {pair[1]: pair[2].strip("'\"") for pair in pairs if pair}


def contradictions(task: Task, text: str) -> list[str]:
    """Where a task's file says something else than the log, which wins (PACT 3.4)."""
    front = frontmatter(text)
    return [
        f"the file says {name} {front[name]}, the log {getattr(task, name)}"
        for name in _DECISION_FIELDS
        if name in front and front[name] != getattr(task, name)
    ]


def union_attributes(text: str) -> str:
    """`.gitattributes` with what lets two branches write; what is there stays."""
    have = {line.split()[0] for line in text.splitlines() if "merge=" in line and line.split()}
    need = [f".pact/{name} merge=union" for name in ("log.jsonl", "STATE.yml")]
    lacking = [line for line in need if line.split()[0] not in have]
    if not lacking:
        return text
    rest = text if not text or text.endswith("\n") else f"{text}\n"
    return rest + "".join(f"{line}\n" for line in lacking)
