"""What the probe is asked: forty types in five shapes, envelopes of 397 to 505 bytes."""

import json

AREAS = ("session", "message", "doc", "task", "decision", "review", "git", "agent")
VERBS = ("open", "edit", "note", "vote", "close")
TYPES = [f"{area}.{verb}" for area in AREAS for verb in VERBS]

LOREM = (
    "the quick brown fox jumps over a lazy dog while we edit the shared document "
    "and measure the throughput of this server, again and again"
)


def session_id(number: int) -> str:
    """The name of a session of the probe, as long as a ULID."""
    return f"01S{number:023d}"


PAYLOADS = [
    json.dumps(payload, separators=(",", ":")).encode()
    for payload in (
        {"title": "a title", "body": LOREM, "tags": ["a", "b"], "priority": 3, "draft": False},
        {
            "path": "src/main.py",
            "range": {"start": {"line": 1, "ch": 2}, "end": {"line": 3, "ch": 4}},
            "text": LOREM,
            "version": 7,
        },
        {"target": session_id(1), "state": "active", "note": LOREM[:80], "score": 0.5},
        {"text": LOREM, "format": "plain", "mentions": ["p1", "p2"], "thread": None},
        {
            "sha": "0" * 40,
            "branch": "main",
            "message": LOREM,
            "files": ["a.py", "b.py"],
            "additions": 3,
            "deletions": 4,
        },
    )
]
