"""A person at a shell: login, whoami, invite, people, logout; no export lines."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.clients.cli import CommandRun, clean_environment, run_accord
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.waiting import until

Shell = Callable[..., CommandRun]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture
def at(tmp_path: Path) -> Callable[[str], Shell]:
    """The shell of somebody with a home of their own."""

    def of(who: str) -> Shell:
        home = tmp_path / who
        home.mkdir()

        def run(*words: str, line: str = "", **env: str) -> CommandRun:
            own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
            done = subprocess.run(
                [sys.executable, "-m", "accord", *words],
                input=line,
                capture_output=True,
                text=True,
                cwd=home,
                env=clean_environment(**(own | env)),
                timeout=60,
                check=False,
            )
            return CommandRun(done.returncode, done.stdout, done.stderr)

        return run

    return of


def link_for(house: ServerProcess, id: str, *roles: str) -> str:
    request = {"id": id, "roles": roles or ["admin"]}
    code = house.admin_request("POST", "/admin/invitations", request)["code"]
    return f"{house.url}#code={code}"


def test_after_login_every_command_works_without_export_lines(
    house: ServerProcess, at: Callable[[str], Shell]
) -> None:
    olga, bob = at("olga"), at("bob")
    link = link_for(house, "olga")

    signed_in = olga("login", link)
    assert signed_in.out.startswith(f"Signed in to {house.url} as olga (admin).\n")
    session = olga("session", "create", "--name", "First steps").out.strip()
    assert session in olga("session", "list").out
    assert olga("gates").out == "Nothing waits for your approval.\n"
    assert "olga" in olga("token", "list").out
    again = olga("login", link)
    assert (again.code, "not valid" in again.err) == (3, True)

    invited = olga("invite", "--role", "driver", "--name", "bob")
    assert invited.out.startswith(f"{house.url}#code=")
    assert "bob, driver; works once" in invited.err
    assert bob("login", line=invited.out).code == 0
    me = bob("whoami", "--json").json
    assert (me["id"], me["roles"], me["url"]) == ("bob", ["driver"], house.url)
    for words in (("invite", "--role", "driver"), ("people", "list")):
        refused = bob(*words)
        assert (refused.code, "Only operators" in refused.err) == (3, True)
    (device,) = [
        each["id"]
        for each in olga("people", "devices", "--json").json["devices"]
        if each["principal"] == "bob"
    ]
    assert olga("people", "revoke", device).code == 0
    assert bob("session", "list").code == 3
    assert olga("logout").out.startswith(f"Signed out of {house.url}")
    gone = olga("whoami")
    assert (gone.code, "not signed in" in gone.err) == (3, True)


def test_a_code_is_read_from_a_flag_or_from_standard_input(
    house: ServerProcess, at: Callable[[str], Shell]
) -> None:
    carol = at("carol")
    url, _, code = link_for(house, "carol", "driver").partition("#code=")

    assert carol("login", url, "--code", code, "--profile", "one").code == 0
    _, _, code = link_for(house, "dan", "driver").partition("#code=")
    assert carol("login", url, line=f"{code}\n", ACCORD_PROFILE="two").code == 0
    assert carol("whoami", "--json").json["id"] == "dan"
    assert carol("whoami", "--json", ACCORD_PROFILE="one").json["id"] == "carol"
    both = carol("login", f"{url}#code=x", "--code", "y")
    assert (both.code, "leave out --code" in both.err) == (2, True)
    assert carol("login", url).code == 2


def test_a_token_goes_to_no_other_server_and_never_in_the_clear(
    house: ServerProcess, at: Callable[[str], Shell], tmp_path: Path
) -> None:
    erin = at("erin")
    erin("login", link_for(house, "erin", "driver"))
    with run_server(tmp_path / "other") as other:
        elsewhere = erin("session", "list", ACCORD_URL=other.url)
        assert (elsewhere.code, "not signed in" in elsewhere.err) == (3, True)
        both = erin("session", "list", ACCORD_URL=other.url, ACCORD_TOKEN=other.admin_token)
        assert both.code == 0
    alone = erin("session", "list", ACCORD_TOKEN=house.admin_token)
    assert (alone.code, "set ACCORD_URL too" in alone.err) == (2, True)
    clear = erin("session", "list", ACCORD_URL="http://192.0.2.1:7420", ACCORD_TOKEN="x.y.z")
    assert (clear.code, "not encrypted" in clear.err) == (2, True)
    clear = erin("login", "http://192.0.2.1:7420#code=abc")
    assert (clear.code, "not encrypted" in clear.err) == (2, True)


def test_a_profile_that_others_can_read_is_refused_with_the_fix(
    house: ServerProcess, at: Callable[[str], Shell], tmp_path: Path
) -> None:
    frank = at("frank")
    frank("login", link_for(house, "frank", "driver"))
    file = tmp_path / "frank" / "config" / "accord" / "profiles.toml"
    file.chmod(0o644)

    refused = frank("session", "list")

    assert (refused.code, f"chmod 600 {file}" in refused.err) == (2, True)
    assert frank("doctor").code != 0
    file.chmod(0o600)
    assert frank("session", "list").code == 0


def test_the_owner_of_the_data_makes_links_without_a_token(
    house: ServerProcess, at: Callable[[str], Shell]
) -> None:
    gina = at("gina")
    made = gina("invite", "--role", "admin", "--name", "gina", "--data-dir", str(house.home))

    assert made.out.startswith(f"{house.url}#code=")
    # Another process wrote it into the log, which the server follows.
    id = made.err.split()[-1]
    asyncio.run(until(lambda: id in str(house.admin_request("GET", "/admin/invitations"))))
    assert gina("login", made.out.strip()).code == 0
    assert gina("invite", "--role", "driver", "--name", "A B").code == 2
    open_ones = gina("invite", "--role", "driver", "--json").json
    assert open_ones["link"].startswith(house.url)
    assert "code" not in open_ones
    assert open_ones["id"] in gina("people", "invitations").out
    assert gina("people", "revoke", open_ones["id"]).out.startswith("The invitation")
    assert gina("people", "revoke", "nothing").code == 4


def test_a_removed_person_has_no_way_in_and_no_membership(
    house: ServerProcess, at: Callable[[str], Shell]
) -> None:
    heidi, ivan = at("heidi"), at("ivan")
    heidi("login", link_for(house, "heidi"))
    ivan("login", link_for(house, "ivan", "driver"))
    session = heidi("session", "create").out.strip()
    assert ivan("session", "join", session).code == 0

    removed = heidi("people", "remove", "ivan", "--reason", "left")

    assert removed.out == (
        "ivan is removed: 1 tokens, 1 devices and 0 invitations are revoked, and 1 memberships "
        "ended\n"
    )
    assert ivan("session", "list").code == 3
    assert "ivan" not in [
        each["id"] for each in heidi("session", "show", session, "--json").json["members"]
    ]
    assert heidi("people", "remove", "ivan").code == 4
    assert heidi("people", "remove", "heidi").code == 5


def test_who_is_signed_in_elsewhere_is_told_where(server: ServerProcess, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    code = server.admin_request("POST", "/admin/invitations", {"id": "ivo", "roles": ["driver"]})
    run_accord("login", f"{server.url}#code={code['code']}", cwd=tmp_path, **env)

    other_name = server.url.replace("127.0.0.1", "localhost")
    ran = run_accord("whoami", "--url", other_name, cwd=tmp_path, **env)

    assert ran.code == 3
    assert f"not signed in to {other_name} (you are signed in to {server.url})" in ran.err


def test_without_a_link_and_with_empty_input_it_says_where_a_link_comes_from(
    tmp_path: Path,
) -> None:
    ran = run_accord("login", cwd=tmp_path)
    assert ran.code == 2
    assert "There is no link: standard input is empty" in ran.err
    assert "`accord invite`" in ran.err

    ran = run_accord("login", "http://127.0.0.1:7420", cwd=tmp_path)
    assert (ran.code, "There is no code" in ran.err) == (2, True)
