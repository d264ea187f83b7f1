"""Compatibility: a log written by commit 3700c05 still opens, verifies and replays.

The server of that commit wrote `tests/data/log_3700c05`. It has a record of every event that the
commit could write, the public keys of the signatures, and what that commit read from the log.
Modules may be renamed; stored bytes, envelopes and the contents of sessions may not change.

These tests use the command line, HTTP and the socket for git hooks, and import nothing of Accord,
so that a renaming cannot change what is tested.
"""

import gzip
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

WRITER = "3700c05"
DATA = Path(__file__).parents[1] / "data" / "log_3700c05"
TIMEOUT_S = 60.0
EXIT_BROKEN = 5  # of `accord verify` for a damaged log
EXIT_REMOVED = 4  # of `accord session log` for a session with a retention cut
CHECKSUM = 32  # bytes in front of a snapshot

EXPECTED: dict[str, Any] = json.loads(gzip.decompress((DATA / "expected.json.gz").read_bytes()))
TRANSCRIPTS: dict[str, list[dict[str, Any]]] = EXPECTED["transcript"]
REMOVED_UP_TO: dict[str, int] = EXPECTED["removed_up_to"]
SESSIONS = sorted(TRANSCRIPTS)
# Sessions of Alice that have not ended and have every kind of context item.
OPEN = ("open", "parser", "release", "two-ways")


# The fixture, the command line, a server


def unpacked(home: Path) -> Path:
    """Create a data directory with the earlier log and without a private key."""
    (home / "keys").mkdir(mode=0o700, parents=True)
    home.chmod(0o700)
    database = home / "accord.db"
    database.write_bytes(gzip.decompress((DATA / "accord.db.gz").read_bytes()))
    database.chmod(0o600)
    for file in (DATA / "keys").glob("*.pub"):
        shutil.copyfile(file, home / "keys" / file.name)
        (home / "keys" / file.name).chmod(0o600)
    return home


@pytest.fixture(scope="module")
def original() -> Iterator[Path]:
    """The log as it was written; read-only."""
    with tempfile.TemporaryDirectory(prefix="acc") as folder:
        yield unpacked(Path(folder) / "home")


@pytest.fixture
def home() -> Iterator[Path]:
    """A copy that a test may change; its path is short because it contains a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="acc") as folder:
        yield unpacked(Path(folder) / "home")


def environment(home: Path) -> dict[str, str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ACCORD_", "PVP_", "PACT_"))
    }
    return ours | {"ACCORD_HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", "USER": "olga"}


def accord(home: Path, *words: str, code: int = 0) -> str:
    """Run a command, check its exit code and return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "accord", *words],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def read(home: Path, *words: str) -> Any:
    """Run a command on the files, without a server, and parse its JSON output."""
    return json.loads(accord(home, *words, "--data-dir", str(home), "--json"))


def log_of(home: Path, session: str, after: int = 0) -> list[dict[str, Any]]:
    """The messages of a session from `accord session log --json`."""
    behind = ("--after", str(after)) if after else ()
    output = accord(home, "session", "log", session, *behind, "--data-dir", str(home), "--json")
    return [json.loads(line) for line in output.split("\n") if line]


class Server(NamedTuple):
    """A running server on a data directory."""

    home: Path
    url: str
    admin: str

    def ask(self, method: str, path: str, token: str, body: Any = None) -> Any:
        """Send a request and return the JSON response; an error response fails the test."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310 - our own
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 - our own address
                return json.loads(answer.read())
        except HTTPError as error:
            raise AssertionError((method, path, error.code, error.read().decode())) from None

    def token(self, id: str, kind: str, workspace: str = "default", role: str = "observer") -> str:
        """Issue a token for a member of the logged sessions; the tokens of the log have expired."""
        request = {"id": id, "type": kind, "roles": [role], "workspace": workspace}
        return str(self.ask("POST", "/admin/tokens", self.admin, request)["token"])

    def say(self, token: str, session: str, sender: str, type: str, payload: Any) -> int:
        """Post one message; returns its `seq`."""
        envelope = {"v": 1, "id": f"later-{type}-{session}", "ts": "2026-12-01T00:00:00Z"}
        envelope |= {"session": session, "sender": sender, "type": type, "payload": payload}
        return int(self.ask("POST", f"/sessions/{session}/messages", token, envelope)["seq"])

    def join(self, token: str, session: str, who: str) -> int:
        """Join a session as an admin."""
        person = {"id": who, "name": who, "type": "human", "roles": ["admin"], "transport": "http"}
        payload = {"participant": person, "supported_versions": [1]}
        return self.say(token, session, who, "session.join", payload)

    def hook(self, action: str, **arguments: Any) -> Any:
        """Send a request to the socket for git hooks and return its response."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(TIMEOUT_S)
            line.connect(str(self.home / "bridge.sock"))
            line.sendall(json.dumps({"action": action, **arguments}).encode() + b"\n")
            response = b""
            while not response.endswith(b"\n") and (more := line.recv(1 << 16)):
                response += more
        return json.loads(response)


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """Run a server on this directory; it must stop cleanly and log no error."""
    ready, log = home / "ready.json", home / "server.log"
    words = ["serve", "--data-dir", str(home), "--port", "0", "--ready-file", str(ready)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "accord", *words, "--rate-limit", "off"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        until = time.monotonic() + TIMEOUT_S
        while not ready.exists():
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < until, log.read_text("utf-8")
            time.sleep(0.02)
        info = json.loads(ready.read_text("utf-8"))
        yield Server(home, info["url"], info["admin_token"])
    finally:
        process.terminate()
        code = process.wait(TIMEOUT_S)
    assert code == 0, log.read_text("utf-8")
    assert "Traceback" not in log.read_text("utf-8")
    assert '"stack": [' not in log.read_text("utf-8")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server on a copy of the log, for the tests that only read."""
    with (
        tempfile.TemporaryDirectory(prefix="acc") as folder,
        serving(unpacked(Path(folder) / "home")) as running,
    ):
        yield running


def workspace_of(session: str) -> str:
    return "acme" if session == "acme-room" else "default"


# The fixture itself


def test_fixture_has_every_kind_of_record_of_the_earlier_commit(original: Path) -> None:
    sql = "SELECT body FROM records ORDER BY pos"
    with closing(sqlite3.connect(original / "accord.db")) as database:
        found = Counter(json.loads(body)["kind"] for (body,) in database.execute(sql))

    assert EXPECTED["writer"] == WRITER
    assert found == EXPECTED["records"]
    assert EXPECTED["events_never_written"] == []
    assert not list(DATA.glob("keys/*.pem")), "private keys must not be committed"


# The files, without a server


def as_printed_now(report: dict[str, Any]) -> dict[str, Any]:
    """The report of the earlier commit with the names and times that `--json` has now."""
    streams = [
        {name: value for name, value in stream.items() if name != "removed_why"}
        | {name: time_as_text(stream[name]) for name in ("signed_at", "removed_at")}
        | {"removed_reason": stream["removed_why"]}
        for stream in report["streams"]
    ]
    return {**report, "streams": streams}


def time_as_text(milliseconds: int | None) -> str | None:
    """`2026-01-30T20:00:00.000Z`."""
    if milliseconds is None:
        return None
    at = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


def test_log_verifies(original: Path) -> None:
    found = read(original, "verify")

    assert found["holds"]
    assert found == as_printed_now(EXPECTED["verify"])
    assert all(each["vouched"] and not each["unsigned"] for each in found["streams"])


def test_session_list_is_unchanged(original: Path) -> None:
    assert read(original, "session", "list") == EXPECTED["sessions"]


# Where a session's detail has a field that the earlier commit did not show.
ADDED_SINCE = {
    *("gate_timeout_seconds", "secrets", "standing_grants", "unmeetable", "forks.conflicts"),
    *("gates.action.arguments_omitted", "gates.action.computed", "gates.action.gated"),
    *(
        "gates.action.used",
        "gates.fork_name",
        "gates.lacks.candidates",
        "gates.notes",
        "gates.people",
    ),
    *("gates.skipped", "gates.standing", "gates.unmeetable", "gates.waits_for"),
    *("merges.changed", "merges.head"),
    *("tools.arguments_omitted", "tools.computed", "tools.gated", "tools.used"),
}
# Sentences for people that are worded differently now, with the earlier wording.
REWORDED_SINCE = {
    (
        "tools.held.until",
        "Its gate opens once the rules allow deployed=YES/NO; TESTS_terminal=YES/NO comes first.",
    ): "People are asked once the rules allow deployed=YES/NO, and TESTS_terminal=YES/NO "
    "comes first."
}


def as_of_the_earlier_commit(part: Any, path: str = "") -> Any:
    """A session's detail as it is now, without the fields that were added since."""
    if isinstance(part, list):
        return [as_of_the_earlier_commit(item, path) for item in part]
    if isinstance(part, dict):
        places = {key: f"{path}.{key}".lstrip(".") for key in part}
        return {
            key: as_of_the_earlier_commit(value, places[key])
            for key, value in part.items()
            if places[key] not in ADDED_SINCE
        }
    return REWORDED_SINCE.get((path, part), part) if isinstance(part, str) else part


def test_only_added_fields_are_left_out_of_a_comparison() -> None:
    tool = {"used": True, "held": {"until": "x", "why": "y"}}
    detail = {"config": {"rules": ["x"]}, "tools": [{"arguments": {"used": 1}, **tool}]}

    assert as_of_the_earlier_commit(detail) == {
        "config": {"rules": ["x"]},
        "tools": [{"arguments": {"used": 1}, "held": {"until": "x", "why": "y"}}],
    }


@pytest.mark.parametrize("session", SESSIONS)
def test_session_detail_and_messages_are_unchanged(original: Path, session: str) -> None:
    removed = REMOVED_UP_TO.get(session, 0)
    detail = read(original, "session", "show", session)
    assert as_of_the_earlier_commit(detail) == EXPECTED["detail"][session]
    assert log_of(original, session, removed) == TRANSCRIPTS[session]


@pytest.mark.parametrize("session", sorted(REMOVED_UP_TO))
def test_session_log_reports_a_removed_beginning(original: Path, session: str) -> None:
    place = ("--data-dir", str(original))
    accord(original, "session", "log", session, *place, code=EXIT_REMOVED)


@pytest.mark.parametrize("fork", [None, "try-a-grammar"])
def test_context_after_merges_and_changes_is_unchanged(original: Path, fork: str | None) -> None:
    there = [each for each in EXPECTED["context"]["two-ways"] if each["fork"] == fork]
    assert there
    for item in there:
        where = ("--fork", fork) if fork else ()
        found = read(original, "session", "context", "two-ways", "show", item["key"], *where)
        assert found == item


def test_revoked_tokens_are_still_known(home: Path) -> None:
    place = ("--data-dir", str(home))
    accord(home, "token", "revoke", EXPECTED["revoked_for_good"], *place)
    accord(home, "token", "revoke", "01JZ0Q6Y5W3V8T2N4M6K8H0F2E", *place, code=4)


# A server on it


@pytest.mark.parametrize("session", SESSIONS)
def test_server_shows_each_member_the_messages_they_could_read(
    server: Server, session: str
) -> None:
    whole = {each["seq"]: each for each in TRANSCRIPTS[session]}
    for seat, known in EXPECTED["members"][session].items():
        token = server.token(seat, known["type"], workspace_of(session))
        after = REMOVED_UP_TO.get(session, 0)
        page = server.ask("GET", f"/sessions/{session}/transcript?limit=1000&after={after}", token)
        found = {each["seq"]: each for each in page["messages"] if each["seq"] in whole}
        unread = set(known["unread"])
        assert not page["has_more"]
        assert found == {seq: each for seq, each in whole.items() if seq not in unread}, seat


@pytest.mark.parametrize("session", sorted(EXPECTED["ended_detail"]))
def test_server_shows_an_ended_session_unchanged(server: Server, session: str) -> None:
    for reader, known in EXPECTED["ended_detail"][session].items():
        token = server.token(reader, "human", workspace_of(session))
        shown = server.ask("GET", f"/sessions/{session}", token)
        assert as_of_the_earlier_commit(shown) == known


def with_unchecked_approvals(known: dict[str, Any]) -> dict[str, Any]:
    """A note as it is told now: approvals that were never checked against content are votes."""
    decisions = [
        {("votes" if key == "approvals" else key): value for key, value in made.items()}
        for made in known["note"]["decisions"]
    ]
    return {**known, "note": {**known["note"], "decisions": decisions}}


def test_hook_socket_reports_linked_sessions_and_commits(server: Server) -> None:
    for repo, known in EXPECTED["bridge"].items():
        assert server.hook("status", repo=repo)["sessions"] == known["sessions"]
        assert server.hook("commits", repo=repo, limit=500)["commits"] == known["commits"]
        for sha, note in known["notes"].items():
            found = server.hook("extended-metadata", repo=repo, sha=sha)
            assert found == with_unchecked_approvals(note)


def test_start_records_the_same_overdue_events(home: Path) -> None:
    """Deadlines and presence are not visible outside, but what a start makes of them is stored."""
    until, expected = time.monotonic() + TIMEOUT_S, added_while_members_stay()
    with serving(home):
        while added(home) != expected and time.monotonic() < until:
            time.sleep(0.2)
    assert added(home) == expected


def added_while_members_stay() -> dict[str, dict[str, int]]:
    """What the earlier commit's start added, without leaves: absence no longer ends a membership.

    The rejected gate and the dropped proposal were those of members who left in this way.
    """
    by_leaves = {"member.left", "gate.rejected", "tool.dropped"}
    known: dict[str, dict[str, int]] = EXPECTED["added_by_a_start"]
    kept = {
        name: {kind: number for kind, number in kinds.items() if kind not in by_leaves}
        for name, kinds in known.items()
    }
    return {name: kinds for name, kinds in kept.items() if kinds}


def added(home: Path) -> dict[str, dict[str, int]]:
    """Count the kinds of records that were added to sessions since the earlier commit."""
    last = {each["stream"]: each["version"] for each in EXPECTED["verify"]["streams"]}
    sql = "SELECT name, version, body FROM records JOIN streams ON key = stream"
    found: dict[str, Counter[str]] = {}
    with closing(sqlite3.connect(home / "accord.db")) as database:
        for name, version, body in database.execute(sql):
            if name.startswith("room/") and version > last[name]:
                found.setdefault(name, Counter())[json.loads(body)["kind"]] += 1
    return {name: dict(each) for name, each in found.items()}


def test_returning_member_gets_a_replay_and_can_send(home: Path) -> None:
    replays = {}
    with serving(home) as server:
        token = server.token("alice", "human", role="admin")
        for session in OPEN:
            server.join(token, session, "alice")
            replays[session] = replayed(server, token, session)
            added = {"key": "later", "content_type": "text", "content": f"Later, in {session}"}
            number = server.say(token, session, "alice", "context.add", added)
            assert number > TRANSCRIPTS[session][-1]["seq"]
            check_context(server, token, session)

    found = read(home, "verify")
    assert found["holds"]
    heads = {each["stream"]: each for each in found["streams"]}
    for known in EXPECTED["verify"]["streams"]:
        assert heads[known["stream"]]["version"] >= known["version"]
    for session in OPEN:
        known = next(e for e in EXPECTED["verify"]["streams"] if e["stream"] == f"room/{session}")
        noted = f"{known['version']}:{known['hash']}"
        place = ("--data-dir", str(home))
        accord(home, "verify", session, "--expect", noted, *place)
        messages = log_of(home, session)
        assert messages[: len(TRANSCRIPTS[session])] == TRANSCRIPTS[session]
        assert f"Later, in {session}" in [each["payload"].get("content") for each in messages]
        unread = set(EXPECTED["members"][session]["alice"]["unread"])
        mine = [each for each in TRANSCRIPTS[session] if each["seq"] not in unread]
        assert replays[session][: len(mine) - 1] == mine[1:]


def replayed(server: Server, token: str, session: str) -> list[dict[str, Any]]:
    """The messages after the first one, fetched in pages."""
    found: list[dict[str, Any]] = []
    after, more = TRANSCRIPTS[session][0]["id"], True
    while more:
        page = server.ask("GET", f"/sessions/{session}/messages?limit=50&after={after}", token)
        found += page["messages"]
        after, more = page["next"], page["has_more"]
    return found


def check_context(server: Server, token: str, session: str) -> None:
    """Check that Alice sees the context items that the log contains."""
    there = {(each["fork"], each["key"]): each for each in EXPECTED["context"][session]}
    listed = server.ask("GET", f"/sessions/{session}", token)["context"]
    mine = [(each["fork"], each["key"]) for each in listed]
    for fork, key in mine:
        if key != "later":
            where = f"&fork={fork}" if fork else ""
            path = f"/sessions/{session}/context?key={key.replace('#', '%23')}{where}"
            assert server.ask("GET", path, token) == there[fork, key]
    seen = {place for place, each in there.items() if "alice" in (each["visible_to"] or ["alice"])}
    assert seen <= set(mine) | unreadable(session)


def unreadable(session: str) -> set[tuple[str | None, str]]:
    """Context of forks that Alice is not in."""
    forks = {each["id"]: each for each in EXPECTED["detail"][session]["forks"]}
    there = EXPECTED["context"][session]
    return {
        (each["fork"], each["key"])
        for each in there
        if each["fork"] and "alice" not in forks[each["fork"]]["members"]
    }


def test_snapshots_of_the_earlier_commit_are_ignored_and_the_state_is_folded_again(
    home: Path,
) -> None:
    """The shape of a snapshot includes the names of the state's classes, which have changed since.

    A different name is written into the stored snapshot, with a valid checksum. A server that used
    the snapshot would show that name.
    """
    stored_name, forged_name = b"Release by rule", b"Release by rote"
    with closing(sqlite3.connect(home / "accord.db")) as database:
        sql = "SELECT blob FROM snapshots WHERE stream = 'room/release'"
        ((stored,),) = database.execute(sql).fetchall()
        blob = stored[CHECKSUM:]
        assert stored[:CHECKSUM] == sha256(blob).digest()
        assert blob.count(stored_name) == 1
        blob = blob.replace(stored_name, forged_name)
        sql = "UPDATE snapshots SET blob = ? WHERE stream = 'room/release'"
        database.execute(sql, (sha256(blob).digest() + blob,))
        database.commit()

    with serving(home) as server:
        token = server.token("alice", "human")
        served = server.ask("GET", "/sessions/release", token)

    assert served["name"] == stored_name.decode()
    assert read(home, "session", "show", "release")["name"] == stored_name.decode()


# Damage

RECORDS = "SELECT name, body FROM records JOIN streams ON key = stream WHERE name LIKE ? || '%'"
PARTS = {
    "messages": (RECORDS, "room/"),
    "tokens": (RECORDS, "people/"),
    "commits": (RECORDS, "repo/"),
    "tasks": (RECORDS, "work/"),
    "a signature": ("SELECT stream, signature FROM heads WHERE stream LIKE ? || '%'", "room/"),
    "state of a retention cut": ("SELECT stream, state FROM cuts WHERE stream > ?", ""),
}


@pytest.mark.parametrize("part", PARTS)
def test_verify_finds_one_damaged_byte(home: Path, part: str) -> None:
    sql, prefix = PARTS[part]
    with closing(sqlite3.connect(home / "accord.db")) as database:
        rows = database.execute(sql, (prefix,)).fetchall()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray((home / "accord.db").read_bytes())
    # Long values span several pages; take one that is stored in one piece.
    stream, value = next(row for row in reversed(rows) if row[1] in data)
    data[data.rindex(value) + len(value) // 2] ^= 1
    (home / "accord.db").write_bytes(data)

    found = json.loads(accord(home, "verify", "--data-dir", str(home), "--json", code=EXIT_BROKEN))

    assert not found["holds"]
    broken = [each["stream"] for each in found["streams"] if not each["holds"]]
    # A signature is in an index as well; damage there is reported for the file as a whole.
    assert broken == [stream] or (not broken and found["damage"])
