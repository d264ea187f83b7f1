"""The two rules, whatever anyone does."""

import unicodedata
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.work import verbs
from accord.core.work.event import EventDraft, LogEntry
from accord.core.work.fold import Fold, fold
from accord.core.work.format import log_lines
from accord.core.work.format.state_and_task_files import render_state_yml
from accord.core.work.state import Work
from accord.core.work.verbs import Assignment
from accord.core.work.vocabulary import EventKind, TaskStatus
from tests.core.work.story import ANN, BOB, CY, Team, log
from tests.spec import proves

# Names that a person takes for one: by case, space, letters of another script, marks on them.
ALIKE = ("Bob", "BOB", "bob ", " bob", "b\u043eb", "bo\u200bb", "bob\u0301", "\uff42ob")
SEATS = st.sampled_from([ANN, BOB, CY, "eve", *ALIKE])
TASKS = st.sampled_from(["T1", "T2", "T3"])
FEATURES = st.sampled_from(["F", "G"])
Step = tuple[Callable[..., list[EventDraft]], tuple[Any, ...]]
ASSIGN = st.builds(
    Assignment, TASKS, FEATURES, st.just("b"), owner=SEATS, reviewer=SEATS, spec=st.just("")
)
STEPS: st.SearchStrategy[Step] = st.one_of(
    ASSIGN.map(lambda said: (verbs.assign, (said,))),
    SEATS.map(lambda seat: (verbs.join, (seat, "worker"))),
    TASKS.map(lambda task: (verbs.checkpoint, (task, "shown"))),
    TASKS.map(lambda task: (verbs.accept, (task,))),
    TASKS.map(lambda task: (verbs.changes, (task, "more"))),
    FEATURES.map(lambda feature: (verbs.merge, (feature,))),
)
STORIES = st.lists(st.tuples(SEATS, STEPS), max_size=40)


def holds(team: Team) -> None:
    """What must be true of every log, read from its lines and not from the state."""
    owner, accepted, shipped = dict[str, str](), dict[str, str](), set[str]()
    tasks: dict[str, set[str]] = {}
    for entry in team.entries:
        event = entry.event
        if event.event_type == EventKind.ASSIGN:
            assert event.task_id not in owner
            assert event.feature not in shipped
            owner[event.task_id] = event.payload.owner
            tasks.setdefault(event.feature, set()).add(event.task_id)
        if event.event_type == EventKind.ACCEPT:
            assert event.agent_id != owner[event.task_id]
            accepted[event.task_id] = event.agent_id
        if event.event_type == EventKind.MERGE:
            assert tasks[event.feature] <= set(accepted)
            shipped.add(event.feature)


def sound(work: Work) -> None:
    """What must be true of every state."""
    for task in work.tasks.values():
        assert task.status is not TaskStatus.ACCEPTED or task.owner != task.reviewer
    for feature in work.features.values():
        assert not feature.shipped or not work.open_tasks(feature)


@proves("PACT-5-1", "PACT-5-2", "PACT-5-3", "UNI-15", "PACT-9-2")
@given(STORIES)
def test_no_sequence_of_verbs_by_any_seats_breaks_a_rule(story: list[tuple[str, Step]]) -> None:
    team = Team()
    for seat, (verb, words) in story:
        before = team.data
        try:
            team.by(seat, verb, *words)
        except Refused:
            assert team.data == before
    made = Fold().add(team.entries)

    holds(team)
    sound(made.work())
    assert made.skipped == [], "a verb recorded what folding does not take"


def one(name: str) -> str:
    """Who this is to a person's eye."""
    plain = unicodedata.normalize("NFKD", name).casefold().replace("\u043e", "o")
    return "".join(letter for letter in plain if letter.isascii()).strip()


def proven(team: Team) -> None:
    """What the log must hold, line by line, for what the state says of it."""
    work, assigned, accepted = team.work, dict[str, LogEntry](), set[str]()
    for entry in team.entries:
        event = entry.event
        if event.event_type == EventKind.ASSIGN:
            assigned.setdefault(event.task_id, entry)
        given = assigned.get(event.task_id)
        if event.event_type == EventKind.ACCEPT and given:
            owner, reviewer = given.event.payload.owner, given.event.payload.reviewer
            if event.agent_id == reviewer and one(owner) != one(reviewer):
                accepted.add(event.task_id)
    done = {id for id, task in work.tasks.items() if task.status is TaskStatus.ACCEPTED}
    assert done <= accepted
    for feature in work.features.values():
        assert not feature.shipped or set(feature.tasks) <= done


FOREIGN = st.fixed_dictionaries(
    {
        "agent_id": SEATS,
        "event_type": st.sampled_from(
            [*(kind.value for kind in EventKind), "start", "cancel", "x"]
        ),
        "task_id": TASKS,
        "feature": FEATURES,
        "payload": st.fixed_dictionaries(
            {},
            optional={
                "owner": SEATS,
                "reviewer": SEATS,
                "evidence": st.just("theirs"),
                # A roster in which everybody has another name.
                "seats": st.just([{"id": "eve", "roles": ["reviewer"], "entry": "E.md"}]),
            },
        ),
    }
)


def life(task: str, feature: str, owner: str, reviewer: str) -> list[dict[str, Any]]:
    """All that happens to a task, by a tool that checks nothing."""
    given = {"owner": owner, "reviewer": reviewer, "branch": "b", "spec": "s"}
    steps: list[tuple[str, str, dict[str, str]]] = [
        ("assign", ANN, given),
        ("checkpoint", owner, {"evidence": "theirs"}),
        ("accept", reviewer, {}),
        ("merge", ANN, {}),
    ]
    return [
        {"agent_id": by, "event_type": kind, "task_id": task, "feature": feature, "payload": said}
        for kind, by, said in steps
    ]


LIVES = st.builds(life, TASKS, FEATURES, SEATS, SEATS)
Part = tuple[str, Step] | list[dict[str, Any]]


@proves("PACT-5-2", "PACT-5-3", "PACT-6.3-1", "UNI-15")
@given(st.lists(st.tuples(SEATS, STEPS) | st.lists(FOREIGN, max_size=3) | LIVES, max_size=20))
def test_no_other_tool_between_the_verbs_breaks_a_rule(story: list[Part]) -> None:
    """Whatever other tools record, a verb of ours is refused or counts, and both rules hold."""
    team = Team()
    for part in story:
        if isinstance(part, list):
            ts, first = team.entries[-1].at + "Z", len(team.entries)
            named = enumerate(part, first)
            team.data += log(*({**each, "event_id": f"t{n}", "ts": ts} for n, each in named))
            team.entries = log_lines.parse_log(team.data).entries
            continue
        seat, (verb, words) = part
        skipped = Fold().add(team.entries).skipped
        try:
            team.by(seat, verb, *words)
        except Refused:
            continue
        assert Fold().add(team.entries).skipped == skipped, "recorded, and then passed by"
    sound(team.work)
    proven(team)


KINDS = st.sampled_from([*(kind.value for kind in EventKind), "start", "cancel", ""])
LINES = st.fixed_dictionaries(
    {
        "event_id": st.sampled_from(["", *map(str, range(60))]),
        "ts": st.sampled_from([f"2026-01-01T00:00:0{digit}Z" for digit in range(10)] + ["?"]),
        "agent_id": SEATS,
        "event_type": KINDS,
        "task_id": TASKS,
        "feature": FEATURES,
        "payload": st.fixed_dictionaries(
            {}, optional={"owner": SEATS, "reviewer": SEATS, "seats": st.just([{"id": ANN}])}
        ),
    }
)


@proves("PACT-1-2", "PACT-8-1", "OPEN-103", "PACT-2.5-2")
@given(st.lists(LINES, max_size=60), st.randoms(use_true_random=False))
def test_any_lines_fold_to_one_sound_state(lines: list[dict[str, Any]], random: Any) -> None:
    data = log(*lines)
    once, twice = (fold(log_lines.parse_log(data).entries) for _ in range(2))

    sound(once)
    assert render_state_yml(once) == render_state_yml(twice)

    # Where each instant is used once, the place of a line means nothing.
    by_time = {line["ts"]: line for line in lines if line["ts"] != "?"}
    told = list(by_time.values())
    random.shuffle(told)
    there = fold(log_lines.parse_log(log(*told)).entries)
    assert there == fold(log_lines.parse_log(log(*by_time.values())).entries)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("event_id", "ts", "agent_id", "role", "event_type", "task_id", "feature", "payload")


@proves("PACT-1.2-1", "OPEN-106")
@given(
    st.lists(
        st.binary(max_size=30)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), JSON).map(log),
        max_size=10,
    )
)
def test_reading_is_total_whatever_the_bytes(parts: list[bytes]) -> None:
    data = b"\n".join(parts)
    reading = log_lines.parse_log(data)
    lines = [line for line in data.split(b"\n") if line.strip()]

    sound(fold(reading.entries))
    assert len(reading.entries) + len(reading.faults) == len(lines)
