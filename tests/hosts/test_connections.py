"""Records of connections: private, found by id, and the command line that hosts get."""

import json
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accord.core.people.device_proofs import ProofStatement
from accord.hosts.connections import (
    Connection,
    ConnectionRecordError,
    connection_path,
    delete_connection,
    find_connection,
    hook_command,
    list_connections,
    new_connection_id,
    read_connection,
    save_connection,
)
from accord.hosts.hook_events import HOOK_EVENTS, POST_TOOL, PRE_TOOL, HookEvent
from accord.identity.sign_in_crypto import is_proof
from accord.settings.profile_store import new_device_key, new_proof

PRIVATE, PUBLIC = new_device_key()
GATE, REPORT = HookEvent("PreToolUse", PRE_TOOL), HookEvent("PostToolUse", POST_TOOL)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def make_connection(**changes: Any) -> Connection:
    fields: dict[str, Any] = {
        "id": new_connection_id("codex"),
        "host": "codex",
        "root": "/project",
        "url": "http://127.0.0.1:7420",
        "server": "S",
        "session": "ses_1",
        "agent": "codex-1",
        "device": "D1",
        "key": PRIVATE,
        "created_at": 1,
    }
    return Connection(**{**fields, **changes})


def test_saved_connection_is_found_and_private(env: dict[str, str]) -> None:
    connection = make_connection()

    path = save_connection(env, connection)

    assert find_connection(env, connection.id) == connection
    assert read_connection(path) == connection
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_connections_are_listed_by_age_and_deleted_once(env: dict[str, str]) -> None:
    second, first = make_connection(created_at=2), make_connection(created_at=1)
    for each in (second, first):
        save_connection(env, each)

    assert list_connections(env) == [first, second]
    assert delete_connection(env, first.id)
    assert not delete_connection(env, first.id)
    assert list_connections(env) == [second]


def test_unknown_connection_is_none_and_no_directory_means_none(env: dict[str, str]) -> None:
    assert find_connection(env, new_connection_id("codex")) is None
    assert list_connections(env) == []


@pytest.mark.parametrize("id", ["", "../../profiles", "codex", "Codex-00000000", "codex-00000000/"])
def test_text_that_is_no_id_is_refused(env: dict[str, str], id: str) -> None:
    with pytest.raises(ConnectionRecordError, match="is not the id of a connection"):
        connection_path(env, id)


def test_record_that_others_can_read_is_refused(env: dict[str, str]) -> None:
    path = save_connection(env, make_connection())
    path.chmod(0o640)

    with pytest.raises(ConnectionRecordError, match="chmod 600"):
        read_connection(path)


def test_damaged_and_renamed_records_are_refused(env: dict[str, str]) -> None:
    path = save_connection(env, make_connection())
    renamed = path.with_name(f"{new_connection_id('codex')}.json")
    path.rename(renamed)

    with pytest.raises(ConnectionRecordError, match="another connection"):
        read_connection(renamed)

    renamed.write_text("{")
    with pytest.raises(ConnectionRecordError, match="damaged"):
        read_connection(renamed)


def test_connection_proves_its_own_device_and_shows_no_key() -> None:
    connection = make_connection()

    proof = new_proof(connection.profile, 5)

    signature = proof.pop("signature")
    assert is_proof(PUBLIC, ProofStatement(**proof), signature)
    assert proof["device"] == "D1"
    assert PRIVATE not in repr(connection)


def run_line(line: str, shell: str = "/bin/sh") -> subprocess.CompletedProcess[str]:
    return subprocess.run([shell, "-c", line], capture_output=True, text=True, check=False)


def test_gate_command_that_cannot_run_refuses_with_a_sentence(tmp_path: Path) -> None:
    line = hook_command(tmp_path / "it's a record.json", "codex", GATE)
    gone = shlex.join([*shlex.split(line)[:3], "/no/such/python", *shlex.split(line)[4:]])

    done = run_line(gone)

    assert done.returncode == 2
    assert "Accord refused this call" in done.stderr
    assert "`accord doctor`" in done.stderr


def test_other_command_that_cannot_run_is_ignored(tmp_path: Path) -> None:
    line = hook_command(tmp_path / "record.json", "codex", REPORT)
    gone = shlex.join([*shlex.split(line)[:3], "/no/such/python", *shlex.split(line)[4:]])

    assert run_line(gone).returncode == 0


def test_command_passes_its_arguments_whole(tmp_path: Path) -> None:
    record = tmp_path / "a 'quoted' $HOME \"record\".json"
    words = shlex.split(hook_command(record, "codex", GATE))
    show = [*words[:3], "/usr/bin/printf", "%s\\n", *words[6:]]

    done = run_line(shlex.join(show))

    assert done.stdout.splitlines()[-3:] == [str(record), "codex", "pre-tool"]


def test_every_host_has_exactly_one_gate() -> None:
    gates = {host: sum(each.is_gate for each in events) for host, events in HOOK_EVENTS.items()}

    assert gates == dict.fromkeys(HOOK_EVENTS, 1)


def test_record_is_plain_json(env: dict[str, str]) -> None:
    connection = make_connection(person="alice")

    content = json.loads(save_connection(env, connection).read_text())

    assert content["person"] == "alice"
    assert "token" not in content
