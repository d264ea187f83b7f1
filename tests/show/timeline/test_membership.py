"""Removals, readmissions and approvals taken back, as a transcript tells them."""

from typing import Any

from accord.show.timeline.timeline import turns_of


def said(type: str, sender: str = "alice", **payload: Any) -> dict[str, Any]:
    return {"id": "m", "ts": "2026-01-30T20:00:00.000Z", "sender": sender, "type": type} | {
        "payload": payload
    }


def titles(*envelopes: dict[str, Any]) -> list[str]:
    return [turn.title for turn in turns_of(list(envelopes))]


def change(old: list[str], new: list[str]) -> dict[str, Any]:
    return said("participant.role_change", participant="bob", old_roles=old, new_roles=new)


def test_a_removal_a_readmission_and_a_change_of_roles_differ() -> None:
    assert titles(change(["driver"], []), change([], ["driver"]), change([], ["admin"])) == [
        "removed bob",
        "lets bob back in, as driver",
        "made bob admin",
    ]


def test_a_rejection_after_the_grant_takes_the_approval_back() -> None:
    propose = said("tool.propose", "claude", tool_name="shell", arguments={}, category="other")
    reject = said("tool.reject", tool_proposal="m", rejector="alice", reason="Too early")
    grant = said("tool.execute", "system", tool_proposal="m", approved_by=["alice"])

    assert titles(propose, reject)[-1] == "rejects shell"
    assert titles(propose, grant, reject)[-1] == "takes back the approval of shell"
