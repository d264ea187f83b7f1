"""Logging in, renewing and logging out with a real server, and with none."""

import asyncio
import base64
import json
import sys
import time
from pathlib import Path

import pytest

from accord.client import Client, SignedOut, Unreachable
from accord.client.errors import ServerRefused
from accord.client.http_client import HttpClient
from accord.client.identity import parse_address
from accord.client.sign_in.login import SignInLink, log_in, log_out, make_link, parse_link
from accord.client.sign_in.profile_token import ProfileToken
from accord.settings.profile_store import changed, locked_profiles, write_profiles
from accord.settings.profiles import Profile, ProfileError, read_profiles
from tests.helpers.clients.cli import clean_environment
from tests.helpers.servers.scripted_websocket_server import (
    NO_DELAY_RETRY,
    ScriptedConnection,
    run_scripted_server,
)
from tests.helpers.servers.server_process import ServerProcess

ASK = """
import os
from accord.client.sign_in.profile_token import ProfileToken
from accord.settings.profiles import select_profile
print(ProfileToken(select_profile(os.environ))())
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def invitation(server: ServerProcess, id: str = "alice") -> SignInLink:
    request = {"id": id, "roles": ["driver"]}
    made = server.admin_request("POST", "/admin/invitations", request)
    return parse_link(make_link(server.url, made["code"]))


def expire(env: dict[str, str], profile: Profile) -> Profile:
    """The stored profile as it is an hour later, for this machine's clock."""
    late = changed(profile, expires_at=int(time.time()) - 1)
    with locked_profiles(env) as stored:
        stored.by_name[profile.name] = late
        write_profiles(env, stored)
    return late


async def test_login_makes_a_profile_whose_token_renews_itself(
    server: ServerProcess, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, account = await log_in(invitation(server), env)
    assert (account.id, profile.name) == ("alice", f"alice@{server.url.removeprefix('http://')}")
    late = expire(env, profile)

    renewed = await asyncio.to_thread(ProfileToken(late, env))

    assert renewed != profile.token
    assert read_profiles(env).by_name[profile.name].token == renewed
    monkeypatch.setenv("XDG_CONFIG_HOME", env["XDG_CONFIG_HOME"])
    async with Client.from_profile(server.url) as client:
        assert client.id == "alice"
        assert await client.sessions() == ()
    with pytest.raises(ProfileError, match="no profile for https://else"):
        Client.from_profile("https://elsewhere.example")


async def test_processes_that_race_for_a_new_token_all_get_the_same(
    server: ServerProcess, env: dict[str, str]
) -> None:
    profile, _ = await log_in(invitation(server), env)
    expire(env, profile)
    racers = await asyncio.gather(
        *(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-c", ASK),
                env=clean_environment(**env),
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(4)
        )
    )

    tokens = {(await racer.communicate())[0].decode().strip() for racer in racers}

    assert tokens == {read_profiles(env).by_name[profile.name].token}
    http = HttpClient(parse_address(server.url), tokens.pop())
    assert (await asyncio.to_thread(http.send, "GET", ("sessions",))).status == 200


async def test_logging_in_again_replaces_the_device(
    server: ServerProcess, env: dict[str, str]
) -> None:
    first, _ = await log_in(invitation(server), env, "me")
    second, _ = await log_in(invitation(server), env, "me")

    devices = server.admin_request("GET", "/admin/devices")["devices"]

    assert [each["id"] for each in devices] == [second.device]
    assert first.device != second.device
    assert list(read_profiles(env).by_name) == ["me"]


async def test_logout_revokes_the_device_and_removes_the_profile(
    server: ServerProcess, env: dict[str, str]
) -> None:
    profile, _ = await log_in(invitation(server), env)
    late = expire(env, profile)

    assert await log_out(late, env)

    assert read_profiles(env).by_name == {}
    assert server.admin_request("GET", "/admin/devices")["devices"] == []
    assert not await log_out(late, env), "a second time there is nothing to revoke"


async def test_a_revoked_device_is_signed_out_and_a_server_that_is_away_is_not(
    server: ServerProcess, env: dict[str, str]
) -> None:
    profile, _ = await log_in(invitation(server), env)
    soon = changed(profile, expires_at=int(time.time()) + 5)
    server.admin_request("DELETE", f"/admin/devices/{profile.device}")

    with pytest.raises(SignedOut, match="revoked"):
        await asyncio.to_thread(ProfileToken(expire(env, profile), env))

    server.stop()
    assert await asyncio.to_thread(ProfileToken(soon, env)) == profile.token
    with pytest.raises(Unreachable):
        await asyncio.to_thread(ProfileToken(expire(env, profile), env))


async def test_a_used_code_and_a_profile_that_cannot_be_stored_log_nobody_in(
    server: ServerProcess, env: dict[str, str], tmp_path: Path
) -> None:
    link = invitation(server)
    loose = tmp_path / "config" / "accord" / "profiles.toml"
    loose.parent.mkdir(parents=True, mode=0o700)
    loose.write_text("")
    loose.chmod(0o644)
    with pytest.raises(ProfileError, match="chmod 600"):
        await log_in(link, env)
    loose.chmod(0o600)
    await log_in(link, env)
    with pytest.raises(ServerRefused, match="not valid"):
        await log_in(link, env)
    with pytest.raises(ProfileError, match="not encrypted"):
        await log_in(SignInLink("http://team.example.org", "code"), env)


def test_a_link_is_an_address_and_a_code() -> None:
    link = parse_link(" HTTP://127.0.0.1:7420/#code=abc ")

    assert link == SignInLink("http://127.0.0.1:7420", "abc")
    assert make_link(*link) == "http://127.0.0.1:7420#code=abc"
    assert parse_link("https://team.example.org").code == ""
    with pytest.raises(ProfileError, match="not a server address"):
        parse_link("code=abc")


def unsigned_token(count: int) -> str:
    """A token that a client can read; this server does not check it."""
    claims = json.dumps({"agent_id": "alice", "count": count}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x"


async def test_a_connection_that_ends_with_its_token_is_opened_again_with_the_next() -> None:
    seen: list[str] = []
    twice = asyncio.Event()

    async def serve(connection: ScriptedConnection) -> None:
        request = connection.websocket.request
        assert request is not None
        seen.append(request.headers["Authorization"])
        if len(seen) == 1:
            await connection.websocket.close(1008, "the token has expired")
        else:
            twice.set()
        await connection.websocket.wait_closed()

    tokens = (unsigned_token(count) for count in range(100))

    async with (
        run_scripted_server(serve) as url,
        Client(url, token=lambda: next(tokens), retry=NO_DELAY_RETRY),
        asyncio.timeout(20),
    ):
        await twice.wait()

    assert seen[0] != seen[1]
