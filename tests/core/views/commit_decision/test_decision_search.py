"""Decisions are found by path, commit, id and words; each approval says what it covers."""

import pytest

from accord.core.provenance.decision_commit import (
    Alternative,
    Approval,
    DecisionCommit,
    ForkMerge,
    PathCoverage,
    ToolExecution,
)
from accord.core.views.commit_decision.decision_search import (
    MAX_TITLE_LENGTH,
    DecisionQuery,
    is_match,
    parse_query,
    searchable_text,
    shown_approvals,
    title_of,
)

SHA, OLD_SHA = "3c99e21" + "0" * 33, "77ab0d2" + "0" * 33
DECISION = DecisionCommit(
    id="dec_1",
    pvp_session="ses_1",
    session_name="Rate-limit the login",
    git_sha=SHA,
    first_sha=OLD_SHA,
    files_changed=("src/auth/limits.py", "docs/limits.md"),
    alternatives_considered=(
        Alternative(kind="proposal", id="p2", description="Let everyone in", reason="Admins!"),
    ),
    tool_executions=(
        ToolExecution(id="p1", name="edit", description="Without Redis, refuse admins"),
        ToolExecution(id="p3", name="shell"),
    ),
    votes=(Approval(gate="g1", by="human:priya", action="p1", comment="Closed, please"),),
)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("  ", DecisionQuery("newest")),
        ("dec_01M7", DecisionQuery("decision", "dec_01M7")),
        ("3C99E21", DecisionQuery("commit", "3c99e21")),
        ("a" * 40, DecisionQuery("commit", "a" * 40)),
        ("defaced", DecisionQuery("words", "defaced")),
        ("./src/auth/", DecisionQuery("path", "src/auth")),
        ("src/auth/limits.py:38", DecisionQuery("path", "src/auth/limits.py", "38")),
        ("limits.py:38-39", DecisionQuery("path", "limits.py", "38-39")),
        ("why not Redis?", DecisionQuery("words", "why not Redis?")),
    ],
)
def test_what_a_person_means(text: str, query: DecisionQuery) -> None:
    assert parse_query(text) == query


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", True),
        ("dec_1", True),
        ("dec_2", False),
        ("3c99e21", True),
        ("77ab0d2", True),
        ("88ab0d2", False),
        ("src/auth", True),
        ("limits.py:38", True),
        ("src/au/", False),
        ("REDIS admins priya", True),
        ("everyone Admins!", True),
        ("Postgres", False),
    ],
)
def test_what_is_found(text: str, found: bool) -> None:
    assert is_match(parse_query(text), DECISION, searchable_text(DECISION)) is found


def test_a_commit_without_a_sha_is_not_found_by_one() -> None:
    bare = DecisionCommit(id="dec_3", pvp_session="ses_1")

    assert not is_match(DecisionQuery("commit", "3c99e21"), bare, "")


class TestTitle:
    def test_is_the_last_reason_that_a_call_gave(self) -> None:
        assert title_of(DECISION) == "Without Redis, refuse admins"

    def test_of_a_merge_is_its_summary(self) -> None:
        merge = ForkMerge(id="m1", fork="f1", summary="Sliding\nwindow")

        assert title_of(DecisionCommit(id="d", pvp_session="s", merges=(merge,))) == (
            "Sliding window"
        )
        assert "sliding" in searchable_text(
            DecisionCommit(id="d", pvp_session="s", merges=(merge,))
        )

    def test_names_files_or_the_session_if_no_reason_was_given(self) -> None:
        few = DecisionCommit(id="d", pvp_session="s", files_changed=("a", "b"))
        many = DecisionCommit(id="d", pvp_session="s", files_changed=("a", "b", "c", "d"))
        none = DecisionCommit(id="d", pvp_session="s", session_name="Login")

        assert title_of(few) == "Changes a, b"
        assert title_of(many) == "Changes a, b, c and 1 more"
        assert title_of(none) == "Decision in Login"

    def test_is_not_longer_than_a_line(self) -> None:
        tool = ToolExecution(id="p", name="edit", description="x" * 400)

        assert len(title_of(DecisionCommit(id="d", pvp_session="s", tool_executions=(tool,)))) == (
            MAX_TITLE_LENGTH
        )


class TestApprovals:
    VOTES = (
        Approval(gate="g3", by="human:lena", action="p3"),
        Approval(gate="g2", by="human:jonas", action="p2"),
        Approval(gate="g1", by="human:priya", action="p1"),
    )
    COVERAGE = (
        PathCoverage(approver="human:priya", proposal="p1", paths=("a", "b")),
        PathCoverage(approver="human:jonas", proposal="p2", paths=("b",), together=True),
    )
    CONTEXT = (PathCoverage(approver="human:lena", proposal="p3", paths=("b",)),)

    def decision(self, covers: str, approvals: tuple[Approval, ...] = ()) -> DecisionCommit:
        return DecisionCommit(
            id="d",
            pvp_session="s",
            covers=covers,
            votes=self.VOTES,
            approvals=approvals,
            coverage=self.COVERAGE,
            context=self.CONTEXT,
        )

    def test_say_what_they_cover_the_widest_first(self) -> None:
        shown = shown_approvals(self.decision("whole", (self.VOTES[2],)))

        assert [(each.approval.by, each.extent, each.paths) for each in shown] == [
            ("human:priya", "whole", ("a", "b")),
            ("human:jonas", "part", ("b",)),
            ("human:lena", "context", ("b",)),
        ]
        assert [each.together for each in shown] == [False, True, False]

    def test_of_a_commit_that_is_covered_in_part_are_never_whole(self) -> None:
        shown = shown_approvals(self.decision("part"))

        assert {each.extent for each in shown} == {"part", "context"}

    def test_of_a_merge_cover_it_without_paths(self) -> None:
        vote = Approval(gate="g9", by="human:maya", action="m1")
        merge = DecisionCommit(id="d", pvp_session="s", covers="whole", approvals=(vote,))

        assert [each.extent for each in shown_approvals(merge)] == ["whole"]

    def test_of_something_else_by_a_person_who_approved_all_is_context(self) -> None:
        vote = Approval(gate="g9", by="human:priya", action="p9")
        decision = self.decision("whole", (self.VOTES[2],))
        more = DecisionCommit(
            id="d",
            pvp_session="s",
            covers="whole",
            votes=(*self.VOTES, vote),
            approvals=decision.approvals,
            coverage=self.COVERAGE,
        )

        extents = {each.approval.gate: each.extent for each in shown_approvals(more)}
        assert extents["g9"] == "context"
