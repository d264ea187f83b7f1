"""A decision and a conversation, and any JSON there may be in a note."""

from typing import Any

from hypothesis import strategies as st

from accord.core.provenance.decision_commit import (
    Alternative,
    Approval,
    ConversationThread,
    DecisionCommit,
    LogPosition,
    Metrics,
    ToolExecution,
    Utterance,
)

DECISION = DecisionCommit(
    id="dec_01HX7K9P4QZCVD3N8MYW6R5T2B",
    pvp_session="01HX7K9P4QZCVD3N8MYW6R5T2B",
    git_sha="9fceb02d0ae598e95dc970b74767f19372d61af8",
    pvp_messages=("msg-01", "msg-05", "msg-12"),
    decision_type="bugfix",
    confidence_score=0.9,
    alternatives_considered=(
        Alternative(
            kind="fork",
            id="oauth2",
            description="Try OAuth2",
            reason="Too complex for MVP timeline",
            by=("human:bob",),
            branch="explore/oauth2",
            commits=("abc123", "def456"),
        ),
    ),
    tool_executions=(
        ToolExecution(
            id="tool-01",
            name="write_file",
            agent="ai:claude",
            category="file_write",
            risk="medium",
            path="src/auth/jwt.ts",
            outcome="success",
            approved_by=("human:alice",),
            duration_ms=150,
            output_hash="sha256:" + "0" * 64,
        ),
        ToolExecution(id="tool-02", name="write_file"),
    ),
    approvals=(
        Approval(gate="g1", by="human:bob", action="tool-01", comment="Fine"),
        Approval(gate="g2", by="human:alice", action="tool-02"),
        Approval(gate="g2", by="human:bob", action="tool-02"),
    ),
    files_changed=("src/auth/jwt.ts",),
    covers="whole",
    session_name="Auth Implementation Sprint",
    decided_by=("ai:claude", "human:alice"),
    decided_at="2026-01-06T10:02:30.000Z",
    position=LogPosition(stream="room/r", version=12, hash="ab" * 32),
    metrics=Metrics(output_tokens=1200),
)
THREAD = ConversationThread(
    "thread-abc",
    (
        Utterance(
            "msg-01",
            "prompt.submit",
            "human:alice",
            "Implement JWT validation",
            "2026-01-06T10:00:00Z",
        ),
        Utterance(
            "msg-05",
            "response.end",
            "ai:claude",
            "Here is the implementation...",
            "2026-01-06T10:02:30Z",
        ),
    ),
)

LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab\u00e9", max_size=3)
ENTRIES = st.fixed_dictionaries(
    {"id": st.sampled_from("ab")},
    optional={
        "timestamp": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        "content": st.text("ab", max_size=3),
        "truncated": st.booleans(),
    },
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES | ENTRIES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=8,
)
NOTES = st.dictionaries(st.sampled_from(["session", "tools", "later"]), VALUES).map(
    lambda note: {**note, "version": 1}
)
