"""`accord token` and `accord keys`, against a real server and on a store of one's own."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from accord.cli.main import main
from accord.core.kernel.role_permissions import Role
from accord.identity.token_service import TokenService
from accord.transports.http.admin import ADMIN_ENDPOINTS, routes
from tests.helpers.servers.token_service import (
    issue_operator_token,
    open_token_service,
    token_request,
)
from tests.spec import proves

ISSUE = "issue --id alice --type human --roles driver"


@pytest.fixture(autouse=True)
def _nobodys_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCORD_URL", "ACCORD_TOKEN", "ACCORD_SESSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCORD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[TokenService]:
    """The desk of a server."""
    async with open_token_service(tmp_path / "server") as made:
        yield made


@pytest.fixture
async def server(
    desk: TokenService, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TokenService]:
    """A server at ACCORD_URL, and an operator's token in ACCORD_TOKEN."""
    async with listening(Starlette(routes=routes(ADMIN_ENDPOINTS, desk))) as url:
        monkeypatch.setenv("ACCORD_URL", url)
        monkeypatch.setenv("ACCORD_TOKEN", (await issue_operator_token(desk)).token)
        yield desk


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of one's own, without a server."""
    return tmp_path / "home"


@asynccontextmanager
async def listening(app: Starlette) -> AsyncIterator[str]:
    bound = socket.create_server(("127.0.0.1", 0))
    made = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    serving = asyncio.create_task(made.serve([bound]))
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        made.should_exit = True
        await serving


async def accord(line: str) -> int:
    """The exit code of a command, run as a shell would: in a loop of its own."""
    return await asyncio.to_thread(main, line.split())


def key_files(store: Path) -> list[str]:
    return sorted({file.suffix for file in (store / "keys").iterdir()})


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


async def test_a_token_is_all_that_comes_out(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord(f"token {ISSUE} --ttl 30m --labels security,legal --name Alice") == 0

    out, err = capsys.readouterr()
    who = await server.identify(out.strip())
    assert who.claims.labels == {"security", "legal"}
    assert who.claims.exp - who.claims.iat == 1800
    assert "alice, human, driver" in err
    assert who.claims.jti in err


async def test_a_program_gets_json(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord(f"token {ISSUE} --json") == 0

    given = said(capsys)
    assert (await server.identify(given["token"])).claims.jti == given["jti"]


@proves("OPEN-121")
async def test_the_role_among_threads_can_be_given(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "issue --id claude --type agent --roles driver --role orchestrator --json"
    assert await accord(f"token {line}") == 0

    assert said(capsys)["role"] == "orchestrator"


async def test_an_agent_with_a_human_role_is_warned_of(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord("token issue --id claude --type agent --roles approver") == 0

    assert "warning: claude is an agent" in capsys.readouterr().err


async def test_tokens_are_listed_and_revoked(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    given = await server.admin_for().issue(token_request("bob", Role.APPROVER))
    jti = given.claims.jti

    assert await accord(f"token revoke {jti} --reason lost") == 0
    assert f"{jti} is revoked" in capsys.readouterr().out
    assert await accord("token list") == 0

    heads, olga, bob = capsys.readouterr().out.splitlines()
    assert heads.split()[:4] == ["JTI", "ID", "TYPE", "ROLES"]
    assert olga.split()[1] == "olga"
    assert bob.startswith(jti)
    assert bob.endswith("revoked")


async def test_lists_and_revocations_as_json(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord("token revoke lost --json --force") == 0
    assert said(capsys) == {"jti": "lost", "revoked": True}
    assert await accord("token list --json") == 0
    assert [each["principal"] for each in said(capsys)["tokens"]] == ["olga"]


async def test_keys_are_listed_and_rotated(
    server: TokenService, capsys: pytest.CaptureFixture[str]
) -> None:
    old = server.keyring.active

    assert await accord("keys rotate") == 0
    new = server.keyring.active
    assert f"{new} signs from now on" in capsys.readouterr().out
    assert await accord("keys list") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(line[0], line[-1]) for line in lines] == [(old, "verifies"), (new, "signs")]


async def test_keys_as_json(server: TokenService, capsys: pytest.CaptureFixture[str]) -> None:
    assert await accord("keys rotate --json") == 0
    made = said(capsys)
    assert await accord("keys list --json") == 0
    assert said(capsys)["keys"][-1] == made


@proves("UNI-26")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("issue --id system --type human --roles driver", 2),
        ("issue --id alice --type human --roles driver --ttl 59s", 2),
        ("issue --id alice --type human --roles driver --ttl 366d", 2),
        (f"revoke {'x' * 129}", 2),
    ],
)
async def test_what_makes_no_sense_is_bad_input(
    server: TokenService, capsys: pytest.CaptureFixture[str], line: str, code: int
) -> None:
    assert await accord(f"token {line}") == code

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("accord: ")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "issue",
        "issue --id alice --type god --roles driver",
        f"{ISSUE} --ttl soon",
        f"{ISSUE} --role emperor",
        "issue --id alice --type human --roles emperor",
        "issue --id alice --type human --roles=",
        f"{ISSUE} --capabilities fly",
        "revoke",
    ],
)
def test_what_cannot_be_parsed_is_bad_input(line: str) -> None:
    assert main(["token", *line.split()]) == 2


@proves("UNI-26")
async def test_who_is_no_operator_is_not_allowed(
    server: TokenService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for mine in ("", "a.b.c", (await server.admin_for().issue(token_request("bob"))).token):
        monkeypatch.setenv("ACCORD_TOKEN", mine)
        assert await accord("token list") == 3

    assert capsys.readouterr().out == ""


async def test_of_what_another_workspace_has_nothing_is_found(
    server: TokenService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "ACCORD_TOKEN", (await issue_operator_token(server, "otto", "elsewhere")).token
    )

    assert await accord("token revoke unheard-of") == 4


async def test_what_answers_but_is_no_accord_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hello(_: object) -> PlainTextResponse:
        return PlainTextResponse("hello")

    async with listening(Starlette(routes=[Route("/admin/tokens", hello)])) as url:
        for address in (url, url + "/elsewhere"):
            monkeypatch.setenv("ACCORD_URL", address)
            assert await accord("token list") == 6

    assert "not from an Accord server" in capsys.readouterr().err


async def test_a_server_that_hangs_up_is_no_reason_to_work_elsewhere(
    monkeypatch: pytest.MonkeyPatch, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        await writer.wait_closed()

    rude = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with rude:
        monkeypatch.setenv("ACCORD_URL", f"http://127.0.0.1:{rude.sockets[0].getsockname()[1]}")
        assert await accord("token list") == 6

    told = capsys.readouterr().err  # the system says how it ended: closed, or reset
    assert "Remote end closed connection" in told or "Connection reset" in told


async def test_without_a_server_the_store_here_is_used(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord(f"token {ISSUE} --json") == 0
    given = said(capsys)
    assert await accord("token list --json") == 0

    assert [each["jti"] for each in said(capsys)["tokens"]] == [given["jti"]]
    assert key_files(store) == [".pem", ".pub"]


async def test_a_server_that_does_not_answer_is_told_of(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert await accord("keys rotate") == 0
    monkeypatch.setenv("ACCORD_URL", f"http://127.0.0.1:{port}")

    assert await accord("keys list") == 0

    assert "does not answer; using" in capsys.readouterr().err


async def test_a_data_directory_that_is_named_is_meant(server: TokenService, store: Path) -> None:
    assert await accord(f"keys rotate --data-dir {store}") == 0

    assert len(server.keyring.public_keys()) == 1
    assert key_files(store) == [".pem", ".pub"]


async def test_a_flag_names_the_server(
    desk: TokenService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACCORD_TOKEN", (await issue_operator_token(desk)).token)
    async with listening(Starlette(routes=routes(ADMIN_ENDPOINTS, desk))) as url:
        address = url.replace("http://", "ws://") + "/"
        assert await accord(f"keys list --json --url {address}") == 0

    assert said(capsys)["keys"][0]["id"] == desk.keyring.active


@proves("UNI-26")
async def test_keys_that_others_can_read_are_the_wrong_state(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await accord("keys rotate") == 0
    (store / "keys").chmod(0o755)

    assert await accord("keys list") == 5

    assert "chmod 700" in capsys.readouterr().err


@proves("UNI-26")
@pytest.mark.parametrize(("kind", "code"), [("foreign", 5), ("folder", 6), ("home", 6)])
async def test_a_store_that_cannot_be_used_is_told_of(
    store: Path, capsys: pytest.CaptureFixture[str], kind: str, code: int
) -> None:
    spoil(store, kind)

    assert await accord("token list") == code

    assert capsys.readouterr().err.startswith("accord: ")


def spoil(store: Path, kind: str) -> None:
    if kind == "home":
        store.touch()
        return
    store.mkdir()
    if kind == "folder":
        (store / "accord.db").mkdir()
    else:
        (store / "accord.db").write_bytes(b"something else entirely" * 100)


async def test_a_file_that_cannot_be_read_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".accord.toml").write_text('token = "a.b.c"')

    assert await accord("keys list") == 2

    assert "ACCORD_TOKEN" in capsys.readouterr().err


async def test_an_id_that_was_never_issued_is_not_revoked(
    server: TokenService, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jti = (await server.admin_for().issue(token_request("bob"))).claims.jti

    assert await accord(f"token revoke {jti[:-1]}?") == 4
    assert await accord(f"token revoke nope --data-dir {store}") == 4

    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("`accord token list` shows all") == 2
    assert not (await server.people()).revoked
    assert await accord("token revoke nope --force") == 0
    assert await accord("token revoke nope") == 0
    assert set((await server.people()).revoked) == {"nope"}


@proves("UNI-3")
@pytest.mark.parametrize(
    ("id", "advice"),
    [("alice_01", "try alice-01"), ("Bob", "try bob"), ("Zo\u00eb", "use a-z"), ("-a", "use a-z")],
)
async def test_somebody_new_gets_a_slug_and_a_foreign_id_stays_as_it_is(
    server: TokenService, capsys: pytest.CaptureFixture[str], id: str, advice: str
) -> None:
    line = f"token issue --id={id} --type human --roles driver"
    before = len(await server.admin_for().tokens())

    assert await accord(line) == 2
    out, err = capsys.readouterr()
    assert (out, advice in err, "--foreign" in err) == ("", True, True)
    assert len(await server.admin_for().tokens()) == before
    assert await accord(f"{line} --foreign --json") == 0
    assert said(capsys)["principal"] == id


@proves("UNI-13")
@pytest.mark.parametrize(
    ("who", "roles", "rights"),
    [
        ("ann --type human", ["driver", "navigator"], ["manage_participants"]),
        ("ann --type agent", ["driver", "navigator"], []),
        ("bob --type agent", ["driver"], []),
        ("cy --type human", ["navigator"], []),
        ("cy --type human --roles approver", ["approver"], []),
    ],
)
async def test_roles_follow_from_the_seat_in_the_pact_here(
    server: TokenService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    who: str,
    roles: list[str],
    rights: list[str],
) -> None:
    seats = [
        {"id": "ann", "roles": ["orchestrator", "reviewer", "admin", "approver"]},
        {"id": "bob", "roles": ["worker"]},
        {"id": "cy", "roles": ["reviewer"]},
    ]
    payload = {"project": "p", "protocol_version": 1, "seats": seats, "base_branch": "main"}
    event = {"event_id": "1", "ts": "2026-01-01T00:00:00Z", "agent_id": "ann"}
    log = tmp_path / ".pact" / "log.jsonl"
    log.parent.mkdir()
    log.write_text(json.dumps({**event, "event_type": "init", "payload": payload}) + "\n")

    assert await accord(f"token issue --id {who} --json") == 0

    issued = said(capsys)
    assert sorted(issued["roles"]) == roles
    assert issued["capabilities"] == rights
    assert await accord("token issue --id dora --type human") == 2
    assert "Add --roles" in capsys.readouterr().err
