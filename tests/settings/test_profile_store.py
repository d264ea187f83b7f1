"""Profiles on disk: private, changed under a lock, renewed once for all who ask."""

import json
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from accord.core.people.device_proofs import ProofStatement
from accord.identity.sign_in_crypto import is_proof
from accord.settings.profile_store import (
    RENEW_BEFORE_S,
    LockTimeoutError,
    changed,
    current_profile,
    format_profiles,
    locked_profiles,
    new_device_key,
    new_proof,
    write_profiles,
)
from accord.settings.profiles import (
    Profile,
    ProfileError,
    Profiles,
    parse_profiles,
    profiles_path,
    read_profiles,
)

PRIVATE, PUBLIC = new_device_key()
LATER = int(time.time()) + 7200


def make_profile(name: str = "alice", **changes: Any) -> Profile:
    fields: dict[str, Any] = {
        "url": "http://127.0.0.1:7420",
        "server": "S",
        "id": "alice",
        "device": "D1",
        "key": PRIVATE,
        "token": "old",
        "expires_at": int(time.time()) + RENEW_BEFORE_S - 1,
    }
    return Profile(name, **{**fields, **changes})


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def store(env: dict[str, str], *profiles: Profile) -> None:
    with locked_profiles(env):
        write_profiles(env, Profiles({each.name: each for each in profiles}, "alice"))


class Server:
    """Renews tokens and remembers the proofs."""

    def __init__(self) -> None:
        self.proofs: list[dict[str, Any]] = []

    def __call__(self, url: str, body: bytes) -> tuple[str, int]:
        self.proofs.append(json.loads(body))
        return f"new-{len(self.proofs)}", LATER


@pytest.mark.parametrize("name", ["alice@127.0.0.1:7420", 'a "b"', "a\x7fb\\", "ä.b]"])
def test_what_is_written_is_read_again(name: str) -> None:
    profile = make_profile(name)

    again = parse_profiles(format_profiles(Profiles({name: profile}, name)).encode(), "file")

    fields = Profile.__slots__
    assert again.current == name
    assert [getattr(again.by_name[name], each) for each in fields] == [
        getattr(profile, each) for each in fields
    ]


def test_file_and_directory_are_for_their_owner_alone(env: dict[str, str]) -> None:
    store(env, make_profile())

    file = Path(profiles_path(env))
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)]
    assert modes == [0o600, 0o700]
    assert [each.name for each in sorted(file.parent.iterdir())] == [
        "profiles.lock",
        "profiles.toml",
    ]


def test_a_proof_is_signed_over_address_device_time_and_nonce() -> None:
    profile = make_profile()

    first, second = new_proof(profile, 5), new_proof(profile, 5)

    statement = ProofStatement(first["address"], first["device"], first["time"], first["nonce"])
    assert (statement.address, statement.device, statement.time) == (profile.url, "D1", 5)
    assert is_proof(PUBLIC, statement, first["signature"])
    assert first["nonce"] != second["nonce"]
    with pytest.raises(ProfileError, match="damaged"):
        new_proof(make_profile(key="AAAA"), 5)


def test_a_token_that_lasts_is_used_as_it_is(env: dict[str, str]) -> None:
    profile = make_profile(expires_at=LATER)

    assert current_profile(profile, env, Server()) is profile
    assert not Path(profiles_path(env)).exists()


def test_many_who_need_a_token_at_once_renew_it_once(env: dict[str, str]) -> None:
    profile, server = make_profile(), Server()
    store(env, profile, make_profile("bob"))
    tokens: list[str] = []

    def ask() -> None:
        tokens.append(current_profile(profile, env, server).token)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert tokens == ["new-1"] * 8
    assert len(server.proofs) == 1
    stored = read_profiles(env)
    assert stored.by_name["alice"].token == "new-1"
    assert stored.by_name["bob"].token == "old"


def test_who_cannot_wait_renews_without_writing(env: dict[str, str]) -> None:
    profile, server = make_profile(), Server()
    store(env, profile)

    with locked_profiles(env):
        assert current_profile(profile, env, server, lock_timeout_s=0.0).token == "new-1"
        with pytest.raises(LockTimeoutError), locked_profiles(env, 0.0):
            pass

    assert read_profiles(env).by_name["alice"].token == "old"


@pytest.mark.parametrize("stored", [[], [make_profile(device="D2")]])
def test_a_profile_that_was_logged_out_meanwhile_is_not_brought_back(
    env: dict[str, str], stored: list[Profile]
) -> None:
    store(env, *stored)

    with pytest.raises(ProfileError, match="logged out"):
        current_profile(make_profile(), env, Server())

    assert set(read_profiles(env).by_name) == {each.name for each in stored}


def test_no_proof_is_sent_over_plain_http_beyond_this_machine(env: dict[str, str]) -> None:
    profile, server = make_profile(url="http://team.example.org"), Server()
    store(env, profile)

    with pytest.raises(ProfileError, match="not encrypted"):
        current_profile(profile, env, server)

    assert server.proofs == []
    assert changed(profile, token="t").token == "t"
