"""What each verb records, and what it refuses, in which order."""

from collections.abc import Callable

import pytest

from accord.core.kernel.refusal import Reason
from accord.core.work import verbs
from accord.core.work.event import EventDraft
from accord.core.work.state import Work
from accord.core.work.verbs import ActingSeat, Assignment
from accord.core.work.vocabulary import EventKind, FeatureStage, TaskStatus, is_branch_name
from tests.core.work.story import ANN, BOB, CY, SEATS, Team, folded, line, refused
from tests.spec import proves

NOTHING = Work()


@proves("PACT-6.5-2", "OPEN-100", "UNI-1")
def test_whoever_has_no_name_does_nothing() -> None:
    assert refused(verbs.check_agent_id, "")[0] is Reason.UNAUTHENTICATED
    assert "PACT_AGENT_ID not set" in refused(verbs.check_agent_id, "")[1]
    assert refused(verbs.check_agent_id, "Ann Lee")[0] is Reason.MALFORMED
    assert verbs.check_agent_id("ann-2") == "ann-2"


@proves("PACT-1.2-4", "OPEN-113", "PACT-9-2", "UNI-27")
def test_a_later_version_is_not_guessed_at() -> None:
    later = folded(line("init", protocol_version=2, seats=[{"id": ANN, "roles": ["worker"]}]))

    for verb, words in VERBS.items():
        why, said = refused(verb, later, ActingSeat(ANN), *words)
        assert (why, "upgrade" in said) == (Reason.UNSUPPORTED_VERSION, True), verb


VERBS: dict[Callable[..., object], tuple[object, ...]] = {
    verbs.init: ("p", SEATS, ""),
    verbs.join: (ANN, "worker"),
    verbs.assign: (Assignment("T1", "F", "b", BOB, ANN),),
    verbs.checkpoint: ("T1", "x"),
    verbs.accept: ("T1",),
    verbs.changes: ("T1", "x"),
    verbs.merge: ("F",),
}


@proves("OPEN-100")
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb is not verbs.init])
def test_an_undeclared_seat_writes_nothing(verb: Callable[..., object]) -> None:
    words = ("eve", "worker") if verb is verbs.join else VERBS[verb]

    assert refused(verb, Team().work, ActingSeat("eve"), *words)[0] is Reason.FORBIDDEN


def test_nothing_is_done_before_there_is_a_pact() -> None:
    for verb, words in VERBS.items():
        if verb is not verbs.init:
            assert refused(verb, NOTHING, ActingSeat(ANN), *words)[0] is Reason.NOT_FOUND


@proves("PACT-2.4-1", "PACT-7.1-1", "PACT-1.1-2", "PACT-6.2-4", "OPEN-101")
def test_init_declares_the_seats() -> None:
    (draft,) = verbs.init(NOTHING, ActingSeat(ANN), "demo", SEATS, "")

    assert draft.payload == {
        "project": "demo",
        "protocol_version": 1,
        "seats": [
            {"id": ANN, "roles": ["orchestrator", "reviewer"], "entry": "CLAUDE.md"},
            {"id": BOB, "roles": ["worker"], "entry": "AGENTS.md"},
            {"id": CY, "roles": ["worker", "reviewer"], "entry": "C.md"},
        ],
        "base_branch": "main",
    }


@proves("PACT-7.1-1", "OPEN-95", "OPEN-102", "OPEN-114", "PACT-6.2-4")
@pytest.mark.parametrize(
    ("project", "seats", "said"),
    [
        ("", SEATS, "--project"),
        ("a\nb", SEATS, "--project"),
        ("p", [], "at least one"),
        ("p", ["ann:worker"], "three fields"),
        ("p", ["ann:worker:a:b"], "three fields"),
        ("p", ["ann::A.md"], "three fields"),
        ("p", ["ann:worker:/etc/passwd"], ".."),
        ("p", ["ann:worker:../A.md"], ".."),
        ("p", ["ann:worker:~/A.md"], ".."),
        ("p", ["ann:worker:.git/config"], "must not be inside .git or .pact"),
        ("p", ["ann:worker:./.Git/config"], "must not be inside .git or .pact"),
        ("p", ["Ann:worker:A.md"], "a-z"),
        ("p", ["ann:boss:A.md"], "orchestrator,worker,reviewer"),
        ("p", ["ann:worker,:A.md"], "orchestrator,worker,reviewer"),
        ("p", ["ann:worker:A.md", "ann:worker:B.md"], "share the seat"),
        ("p", ["ann:worker:A.md", "bob:worker:./a.md"], "share the entry file"),
    ],
)
def test_init_refuses_what_would_not_hold(project: str, seats: list[str], said: str) -> None:
    why, detail = refused(verbs.init, NOTHING, ActingSeat(ANN), project, seats, "")

    assert (why, said in detail) == (Reason.MALFORMED, True), detail


@proves("OPEN-100", "OPEN-101")
def test_init_again_records_nothing_and_another_init_is_refused() -> None:
    team = Team()

    assert refused(verbs.init, NOTHING, ActingSeat("eve"), "p", SEATS, "")[0] is Reason.FORBIDDEN
    assert verbs.init(team.work, ActingSeat(ANN), "demo", SEATS, "") == []
    assert verbs.init(team.work, ActingSeat(ANN), "demo", SEATS, "main") == []
    for other in (("other", SEATS, ""), ("demo", SEATS[:2], ""), ("demo", SEATS, "trunk")):
        assert refused(verbs.init, team.work, ActingSeat(ANN), *other)[0] is Reason.WRONG_STATE


@proves("PACT-7.1-2", "PACT-2.4-3", "OPEN-100", "OPEN-99")
def test_a_seat_joins_itself_alone() -> None:
    team = Team()

    assert team.by(BOB, verbs.join, BOB, "worker")[0].payload == {"roles": ["worker"]}
    assert refused(verbs.join, team.work, ActingSeat(BOB), "", "worker")[0] is Reason.MALFORMED
    why, said = refused(verbs.join, team.work, ActingSeat(BOB), ANN, "worker")
    assert (why, "export PACT_AGENT_ID=ann" in said) == (Reason.FORBIDDEN, True)
    assert refused(verbs.join, team.work, ActingSeat(BOB), BOB, "")[0] is Reason.MALFORMED
    assert refused(verbs.join, team.work, ActingSeat(BOB), BOB, "boss")[0] is Reason.MALFORMED
    assert verbs.join(team.work, ActingSeat(BOB), BOB, "reviewer")
    strict = ActingSeat(BOB, strict=True)
    assert refused(verbs.join, team.work, strict, BOB, "reviewer")[0] is Reason.FORBIDDEN
    assert verbs.join(team.work, strict, BOB, "worker")


@proves("PACT-7.1-3", "PACT-7.1-4", "PACT-2.4-2", "PACT-6.3-1", "PACT-6.4-1", "OPEN-109")
def test_assign_gives_work_to_one_and_its_review_to_another() -> None:
    team = Team()
    said = Assignment("T1", "F", "feat/x", BOB, ANN)

    (draft,) = team.by(ANN, verbs.assign, said)

    assert (draft.task, draft.feature) == ("T1", "F")
    assert draft.payload == {
        "owner": BOB,
        "reviewer": ANN,
        "branch": "feat/x",
        "spec": ".pact/tasks/T1.md",
    }


@proves(
    "PACT-7.1-3",
    "PACT-7.1-4",
    "PACT-6.4-1",
    "PACT-5-1",
    "PACT-5-2",
    "OPEN-98",
    "OPEN-99",
    "OPEN-108",
    "PACT-6.3-1",
)
@pytest.mark.parametrize(
    ("said", "why", "words"),
    [
        (Assignment("", "F", "b", BOB, ANN), Reason.MALFORMED, "task id"),
        (Assignment("T2", "", "b", BOB, ANN), Reason.MALFORMED, "--feature"),
        (Assignment("T2", "F", "", BOB, ANN), Reason.MALFORMED, "--branch"),
        (Assignment("T2", "F", "b", "", ANN), Reason.MALFORMED, "--owner"),
        (Assignment("T2", "F", "b", BOB, ""), Reason.MALFORMED, "--reviewer"),
        (Assignment("../T2", "F", "b", BOB, BOB), Reason.FORBIDDEN, "separation of duties"),
        (Assignment("../T2", "F", "b", BOB, ANN), Reason.MALFORMED, "Task id"),
        (Assignment("a..b", "F", "b", BOB, ANN), Reason.MALFORMED, "Task id"),
        (Assignment("-T2", "F", "b", BOB, ANN), Reason.MALFORMED, "Task id"),
        (Assignment("T2", "F G", "b", BOB, ANN), Reason.MALFORMED, "Feature id"),
        (Assignment("T2", "F", "--b", BOB, ANN), Reason.MALFORMED, "branch"),
        (Assignment("T2", "F", "b", BOB, ANN, "/x.md"), Reason.MALFORMED, "--spec"),
        (Assignment("T2", "F", "b", "eve", ANN), Reason.NO_MEMBER, "eve"),
        (Assignment("T2", "F", "b", BOB, "eve"), Reason.NO_MEMBER, "eve"),
        (Assignment("T1", "G", "b", BOB, ANN), Reason.WRONG_STATE, "already exists"),
        (Assignment("T8", "G", "b", BOB, ANN), Reason.WRONG_STATE, "used the task id T8"),
        (Assignment("T2", "F", "other", BOB, ANN), Reason.WRONG_STATE, "on branch feat"),
        (Assignment("T2", "done", "feat", BOB, ANN), Reason.WRONG_STATE, "shipped"),
    ],
)
def test_assign_refuses_invalid_assignments(said: Assignment, why: Reason, words: str) -> None:
    team = Team()
    team.assign("D", "done")
    ship(team, "D", "done")
    team.assign("T1")
    late = {"owner": BOB, "reviewer": ANN, "branch": "feat", "spec": "t.md"}
    team.record(ANN, [EventDraft(EventKind.ASSIGN, late, "T8", "done")])  # skipped: it is shipped

    found, detail = refused(verbs.assign, team.work, ActingSeat(ANN), said)

    assert (found, words in detail) == (why, True), detail


def ship(team: Team, task: str, feature: str) -> None:
    team.by(BOB, verbs.checkpoint, task, "done")
    team.by(ANN, verbs.accept, task)
    team.by(ANN, verbs.merge, feature)


@pytest.mark.parametrize(
    ("branch", "good"),
    [
        *[("main", True), ("feat/x-1", True), ("ü", True), ("a.b", True)],
        *[("", False), ("-x", False), ("a..b", False), ("a b", False), ("a~1", False)],
        *[("x.lock", False), ("x.lock/y", False), (".x", False), ("x/", False), ("/x", False)],
        *[("x/.y", False), ("@", False), ("HEAD", False), ("a@{1}", False), ("a//b", False)],
        *[("x.", False), ("a\\b", False), ("a\nb", False), ("\udcff", False)],
    ],
)
def test_a_branch_is_what_git_takes_for_one(branch: str, good: bool) -> None:
    assert is_branch_name(branch) is good


@proves("OPEN-99")
def test_roles_restrict_verbs_when_the_pact_enforces_them() -> None:
    team = Team()
    said = Assignment("T1", "F", "b", BOB, ANN)
    seat = team.work.seat(BOB)
    assert seat is not None

    assert verbs.assign(team.work, ActingSeat(BOB), said)
    assert (
        refused(verbs.assign, team.work, ActingSeat(BOB, strict=True), said)[0] is Reason.FORBIDDEN
    )
    assert verbs.assign(team.work, ActingSeat(ANN, strict=True), said)
    assert "not have the role orchestrator" in verbs.role_mismatch(seat, EventKind.ASSIGN)
    assert verbs.role_mismatch(seat, EventKind.CHECKPOINT) == ""


@proves("OPEN-99")
def test_joining_is_for_every_role_that_the_roster_gives() -> None:
    """No orchestrator hears that it is no worker."""
    team = Team()
    ann, bob = team.work.seat(ANN), team.work.seat(BOB)
    assert ann
    assert bob

    assert verbs.join_roles_mismatch(ann, ["orchestrator", "reviewer"]) == ""
    assert (
        verbs.join_roles_mismatch(bob, ["worker", "reviewer"])
        == "bob is not reviewer in the roster (worker)"
    )
    assert verbs.join(team.work, ActingSeat(BOB), BOB, "reviewer")
    no = refused(verbs.join, team.work, ActingSeat(BOB, strict=True), BOB, "reviewer")
    assert no == (Reason.FORBIDDEN, "bob is not reviewer in the roster (worker)")
    assert "give --roles" in refused(verbs.join, team.work, ActingSeat(BOB), BOB, "")[1]


@pytest.mark.parametrize("name", ["ann\n", "\nann", "an\nn", "ann\r", "ann\u2028", "ann\0"])
def test_a_seat_is_named_on_one_line(name: str) -> None:
    """Such a name would forge a line wherever it is shown, in a trailer above all."""
    assert refused(verbs.check_agent_id, name)[0] is Reason.MALFORMED
    for words in ([f"{name}:worker:A.md"], [f"ann:worker:{name}.md"], [f"ann:{name}:A.md"]):
        assert refused(verbs.init, Work(), ActingSeat(ANN), "p", words, "")[0] is Reason.MALFORMED


def test_names_are_short_enough_for_a_file_and_shown_as_they_were_typed() -> None:
    assert verbs.check_agent_id("a" * 64)
    why, said = refused(verbs.check_agent_id, "a" * 5000)
    assert (why, len(said) < 200) == (Reason.MALFORMED, True)
    long = [f"{'a' * 65}:worker:A.md"]
    assert refused(verbs.init, Work(), ActingSeat(ANN), "p", long, "")[0] is Reason.MALFORMED
    two = ["ann:worker:AGENTS.md", "bob:worker:./Agents.md"]
    said = refused(verbs.init, Work(), ActingSeat(ANN), "p", two, "")[1]
    assert said == "Two seats share the entry file ./Agents.md; each seat needs its own"


@pytest.mark.parametrize("base", ["-f", "--detach", "a b", "HEAD"])
def test_a_base_branch_is_a_branch(base: str) -> None:
    seats = ["ann:worker:A.md"]

    assert refused(verbs.init, Work(), ActingSeat(ANN), "p", seats, base)[0] is Reason.MALFORMED


@proves("PACT-7.1-5", "PACT-2.4-4", "OPEN-114", "OPEN-96")
def test_only_the_owner_shows_evidence_and_it_says_something() -> None:
    team = Team()
    team.assign()

    def no(seat: str, *words: str) -> Reason:
        return refused(verbs.checkpoint, team.work, ActingSeat(seat), *words)[0]

    assert no(BOB, "", "x") is Reason.MALFORMED
    assert no(BOB, "T1", " \n") is Reason.MALFORMED
    assert no(BOB, "T1", "x" * (1 << 20) + "y") is Reason.TOO_LARGE
    assert no(BOB, "T1", "\udcff") is Reason.MALFORMED
    assert no(BOB, "T9", "x") is Reason.NOT_FOUND
    assert no(ANN, "T1", "x") is Reason.FORBIDDEN

    drafts = team.by(BOB, verbs.checkpoint, "T1", "a\nb")

    assert [draft.kind.value for draft in drafts] == ["join", "checkpoint"]
    assert drafts[1].payload == {"evidence": "a\nb"}
    assert team.status() == "awaiting_review"
    again = team.by(BOB, verbs.checkpoint, "T1", "better")
    assert [draft.kind.value for draft in again] == ["checkpoint"]


@proves("PACT-7.1-6", "PACT-7.1-7", "PACT-2.4-5", "PACT-2.4-6", "PACT-5-1", "OPEN-95", "OPEN-114")
def test_only_the_reviewer_judges_and_only_what_was_shown() -> None:
    team = Team()
    team.assign(reviewer=CY)

    def no(verb: Callable[..., object], seat: str, *words: str) -> Reason:
        return refused(verb, team.work, ActingSeat(seat), *words)[0]

    assert no(verbs.accept, CY, "") is Reason.MALFORMED
    assert no(verbs.changes, CY, "T1", " ") is Reason.MALFORMED
    assert no(verbs.changes, CY, "T1", "x" * (1 << 20) + "y") is Reason.TOO_LARGE
    assert no(verbs.accept, CY, "T9") is Reason.NOT_FOUND
    assert no(verbs.accept, CY, "T1") is Reason.WRONG_STATE
    team.by(BOB, verbs.checkpoint, "T1", "one")
    for seat in (BOB, ANN):
        assert no(verbs.accept, seat, "T1") is Reason.FORBIDDEN
        assert no(verbs.changes, seat, "T1", "because") is Reason.FORBIDDEN

    assert team.by(CY, verbs.changes, "T1", "more")[0].payload == {"reason": "more"}
    assert team.status() == "changes_requested"
    assert no(verbs.accept, CY, "T1") is Reason.WRONG_STATE
    team.by(BOB, verbs.checkpoint, "T1", "two")
    assert team.by(CY, verbs.accept, "T1")[0].payload == {}
    assert team.status() == "accepted"
    assert no(verbs.checkpoint, BOB, "T1", "three") is Reason.WRONG_STATE
    assert no(verbs.changes, CY, "T1", "late") is Reason.WRONG_STATE


@proves("PACT-7.1-8", "PACT-5-1", "PACT-5-3", "OPEN-98")
def test_a_feature_ships_when_all_of_it_is_accepted_and_once() -> None:
    team = Team()
    team.assign("T1")
    team.assign("T2")

    def no(feature: str) -> tuple[Reason, str]:
        return refused(verbs.merge, team.work, ActingSeat(ANN), feature)

    assert no("")[0] is Reason.MALFORMED
    assert no("G")[0] is Reason.NOT_FOUND
    team.by(BOB, verbs.checkpoint, "T1", "done")
    team.by(ANN, verbs.accept, "T1")
    assert no("F") == (Reason.WRONG_STATE, "Cannot merge F: these tasks are not accepted: T2")
    team.by(BOB, verbs.checkpoint, "T2", "done")
    team.by(ANN, verbs.accept, "T2")
    assert team.by(ANN, verbs.merge, "F")[0].payload == {}
    assert team.work.stage(team.work.features["F"]) is FeatureStage.SHIPPED
    assert no("F") == (Reason.WRONG_STATE, "Feature F is already shipped")


@proves("OPEN-110")
def test_there_is_no_verb_that_takes_a_task_back() -> None:
    team = Team()
    team.assign()

    kinds = {kind.value for kind in EventKind}

    assert kinds.isdisjoint({"cancel", "reassign", "withdraw", "delete"})
    assert (
        refused(verbs.assign, team.work, ActingSeat(ANN), Assignment("T1", "F", "feat", CY, ANN))[0]
        is Reason.WRONG_STATE
    )


@proves("PACT-5-2", "PACT-2.1-4")
@pytest.mark.parametrize("owner", ["Ann", "ann ", "\uff41nn", ""])
def test_a_name_that_only_looks_like_another_is_nobody(owner: str) -> None:
    """Another tool lets ann own it under another spelling; then she does not judge it either."""
    said = line("assign", ANN, "T1", "F", owner=owner, reviewer=ANN, branch="b", spec="s", at=1)
    lines = [
        line("init", seats=[{"id": ANN, "roles": ["worker"]}]),
        said,
        line("checkpoint", owner, "T1", "F", evidence="x", at=2),
    ]

    why, sentence = refused(verbs.accept, folded(*lines), ActingSeat(ANN), "T1")

    assert (why, "not a valid seat name" in sentence) == (Reason.FORBIDDEN, True)
    forced = folded(*lines, line("accept", ANN, "T1", "F", at=3))
    assert forced.tasks["T1"].status is TaskStatus.AWAITING_REVIEW
