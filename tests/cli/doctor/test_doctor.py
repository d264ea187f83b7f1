"""`accord doctor`: what it looks at, and what it says to do."""

import base64
import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accord.cli.doctor import health_checks
from accord.cli.doctor.check_result import WARN, CheckResult
from accord.cli.doctor.config import check_config
from accord.data_dir import DATABASE_NAME
from accord.settings.server import load_config
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.stores.sample_log import build_log


def checks(out: str) -> dict[str, tuple[str, str, str]]:
    """What was found, by what it is about."""
    found = [CheckResult(**each) for each in json.loads(out)["checks"]]
    return {each.about: (each.state, each.found, each.fix) for each in found}


def doctor(*words: str, code: int = 0, **env: str) -> dict[str, tuple[str, str, str]]:
    ran = run_accord("doctor", "--json", *words, cwd=None, **env)
    assert ran.code == code, ran
    return checks(ran.out)


def token(**claims: Any) -> str:
    said = json.dumps({"agent_id": "alice", "kind": "human", **claims}).encode()
    return f"x.{base64.urlsafe_b64encode(said).decode().rstrip('=')}.x"


@pytest.fixture
def free() -> str:
    """An address of this machine where nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_with_a_server_and_a_token_all_is_well(server: ServerProcess) -> None:
    login = {"ACCORD_URL": server.url, "ACCORD_TOKEN": server.admin_token}
    ran = run_accord("doctor", "--data-dir", str(server.home), cwd=None, **login)

    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[-1] in {"No problems found.", "Accord can work here, with 1 warning."}
    assert all(line.startswith(("ok  ", "warn")) for line in lines if line and line[0] in "owf")
    assert f"ok    server     answers at {server.url}" in lines


def test_a_fresh_machine_is_fine_and_told_what_to_do(tmp_path: Path, free: str) -> None:
    found = doctor("--data-dir", str(tmp_path / "none"), "--url", free)

    assert found["data"][0] == found["keys"][0] == found["store"][0] == "ok"
    assert found["server"] == (
        "warn",
        f"not running; port {free.rpartition(':')[2]} is free",
        f"accord serve --port {free.rpartition(':')[2]} --data-dir {tmp_path / 'none'}",
    )
    assert found["token"][0] == "warn"
    assert found["token"][2] == "`accord serve` prints a link; then: accord login LINK"
    assert not (tmp_path / "none").exists()


async def test_keys_that_others_can_read_are_the_matter(tmp_path: Path, free: str) -> None:
    await build_log(tmp_path / "home")
    (pem,) = (tmp_path / "home" / "keys").glob("*.pem")
    pem.chmod(0o644)

    found = doctor("--data-dir", str(tmp_path / "home"), "--url", free, code=5)

    assert found["keys"] == ("fail", "other users can access the signing keys", f"chmod 600 {pem}")


async def test_a_data_directory_that_others_can_read_is_remarked(tmp_path: Path, free: str) -> None:
    await build_log(tmp_path / "home")
    (tmp_path / "home").chmod(0o755)

    found = doctor("--data-dir", str(tmp_path / "home"), "--url", free)

    assert found["data"][0] == "warn"
    assert found["data"][2] == f"chmod 700 {tmp_path / 'home'}"


@pytest.mark.parametrize("last", [False, True])
async def test_a_store_that_lost_a_record_is_damaged(
    tmp_path: Path, free: str, *, last: bool
) -> None:
    await build_log(tmp_path / "home")
    with closing(sqlite3.connect(tmp_path / "home" / DATABASE_NAME)) as db, db:
        rows = db.execute(
            "SELECT pos, name, version FROM records JOIN streams ON key = stream ORDER BY pos"
        ).fetchall()
        newest = {name: pos for pos, name, _ in rows}
        position, stream, version = next(
            row for row in rows[:-1] if (newest[row[1]] == row[0]) is last
        )
        next_one = next(pos for pos, name, _ in rows if pos > position and (last or name == stream))
        db.execute("DELETE FROM records WHERE pos = ?", (position,))

    found = doctor("--data-dir", str(tmp_path / "home"), "--url", free, code=5)

    what = "was" if last else f"is record {version} of {stream},"
    gone = "a record is missing that retention did not remove"
    said = f"{gone}; the first {what} before position {next_one}"
    assert found["store"][:2] == ("fail", said)


def test_a_foreign_file_is_named(tmp_path: Path, free: str) -> None:
    (tmp_path / DATABASE_NAME).write_text("my diary")

    found = doctor("--data-dir", str(tmp_path), "--url", free, code=5)

    assert found["store"][0] == "fail"
    assert "is not a log of Accord" in found["store"][1]


def test_somebody_else_at_the_address_is_found_out(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        sock.listen(0)
        found = health_checks.check_port(url)

    assert found.state == "fail"
    assert "cannot be used" in found.found


@pytest.mark.parametrize("url", ["gopher://x", "http://", "http://x:0", "7420"])
def test_an_address_must_be_one(url: str, tmp_path: Path) -> None:
    found = doctor("--data-dir", str(tmp_path / "none"), "--url", url, code=5)

    assert found["server"][0] == "fail"


def test_a_token_is_looked_into(server: ServerProcess) -> None:
    def of(text: str, code: int = 5) -> tuple[str, str, str]:
        words = ("--data-dir", str(server.home), "--url", server.url)
        return doctor(*words, code=code, ACCORD_TOKEN=text)["token"]

    assert of("rubbish")[1] == "ACCORD_TOKEN does not hold an Accord token"
    assert of(token(exp=1_000_000_000))[1].startswith("alice, human: expired ")
    assert of(token(exp=4_000_000_000))[1] == "alice, human: the server does not accept it"
    assert of(server.issue_token("bob", ttl_s=600), code=0)[0] == "warn"
    assert of(server.admin_token, code=0)[0] == "ok"


def test_clocks_apart_are_a_matter() -> None:
    assert list(health_checks.check_clock_skew("")) == []
    (apart,) = health_checks.check_clock_skew("Thu, 01 Jan 2015 00:00:00 GMT")
    assert apart.state == "fail"
    assert "tokens tolerate 60 s" in apart.found


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / ".accord.toml").write_text("token = 'secret'")

    ran = run_accord("doctor", cwd=tmp_path)

    assert ran.code == 5
    assert "not in a file" in ran.out


def test_a_data_directory_that_cannot_be_made_is_a_matter(tmp_path: Path, free: str) -> None:
    (tmp_path / "file").touch()

    found = doctor("--data-dir", str(tmp_path / "file" / "data"), "--url", free, code=5)

    assert found["data"][0] == "fail"
    assert "cannot be created" in found["data"][1]


async def test_a_whole_file_is_not_said_to_be_more(tmp_path: Path, free: str) -> None:
    await build_log(tmp_path / "home")

    found = doctor("--data-dir", str(tmp_path / "home"), "--url", free)

    assert found["store"][1].startswith("undamaged, ")
    assert "accord verify" in found["store"][1]


# The configuration of a server


def test_what_is_unusual_is_told_with_where_it_came_from(tmp_path: Path, free: str) -> None:
    port = free.rpartition(":")[2]
    (tmp_path / "accord.toml").write_text(f"port = {port}\n[limits]\ngates = 5\n")
    (tmp_path / "accord.toml").chmod(0o644)
    tmp_path.chmod(0o700)

    found = doctor("--data-dir", str(tmp_path), ACCORD_RATE_LIMIT="off")

    file = tmp_path / "accord.toml"
    said = f"port is {port} ({file}); rate_limit is off (ACCORD_RATE_LIMIT); "
    assert found["settings"][:2] == ("ok", f"{said}limits.gates is 5 ({file})")
    assert found["server"][:2] == ("warn", f"not running; port {port} is free")


def test_everything_wrong_with_the_configuration_is_told_at_once(tmp_path: Path, free: str) -> None:
    (tmp_path / "accord.toml").write_text("prot = 1\n[limits]\ngates = -5\n")
    words = ("doctor", "--json", "--data-dir", str(tmp_path), "--url", free)
    ran = run_accord(*words, cwd=None, ACCORD_AUTH="trust")

    wrong = [each["found"] for each in ran.json["checks"] if each["about"] == "settings"]
    assert ran.code == 5
    assert [says.rpartition(str(tmp_path))[2] for says in wrong] == [
        "/accord.toml: there is no setting 'prot'; did you mean port?",
        "/accord.toml: limits.gates: -5 is not valid; write a whole number from 1 to 100000",
        "ACCORD_AUTH: auth: 'trust' is not valid; write token or open",
    ]


def test_a_configuration_that_others_can_write_is_remarked(tmp_path: Path) -> None:
    file = tmp_path / "accord.toml"
    file.write_text("port = 7421\n")
    file.chmod(0o666)

    found = list(check_config(load_config({}, {}, tmp_path), {}))

    said = f"other users can write {file}"
    assert found[0] == CheckResult(WARN, "settings", said, f"chmod go-w {file}")
    assert [each.state for each in found] == ["warn", "ok"]


def test_a_variable_that_is_nearly_one_of_ours_is_remarked() -> None:
    env = {"ACCORD_PROT": "1", "ACCORD_HOME": "/x", "ACCORD_UNRELATED_THING": "1"}

    found = list(check_config(load_config({}, {}, Path("/nonexistent")), env))

    slip = CheckResult(
        WARN, "settings", "ACCORD_PROT is not a setting", "Did you mean ACCORD_PORT?"
    )
    assert found[0] == slip
    assert len(found) == 2


def test_trust_beyond_this_machine_is_found_before_the_start() -> None:
    said = {"auth": "open", "host": "0.0.0.0"}  # noqa: S104 - that is the point

    found = list(check_config(load_config(said, {}, Path("/nonexistent")), {}))

    assert found[0].state == "fail"
    assert "is reachable from elsewhere" in found[0].found


def test_the_store_that_the_configuration_names_is_looked_at(tmp_path: Path, free: str) -> None:
    (tmp_path / "diary").write_text("my diary")
    (tmp_path / "accord.toml").write_text(f'store = "sqlite:{tmp_path / "diary"}"')

    found = doctor("--data-dir", str(tmp_path), "--url", free, code=5)

    assert "is not a log of Accord" in found["store"][1]
