"""The page at the bare address: true, of use, and nothing that could tell anybody a secret."""

import re
import shlex
from html import unescape
from pathlib import Path

import httpx
import pytest

from accord import __version__
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.server_process import ServerProcess

Run = list[list[str]]


def shown(page: str) -> tuple[dict[str, str], Run]:
    """What one is told to put into the environment, and what to type then."""
    found = re.search("<pre>(.*)</pre>", page, re.DOTALL)
    assert found
    lines = [shlex.split(each) for each in unescape(found[1]).splitlines()]
    told = [words[1].partition("=") for words in lines if words[0] == "export"]
    return {name: value for name, _, value in told}, [
        words[1:] for words in lines if words[0] == "accord"
    ]


@pytest.fixture(params=["token", "open"])
def either(request: pytest.FixtureRequest) -> ServerProcess:
    """A server that asks for tokens, or one that does not."""
    name = {"token": "server", "open": "open_server"}[request.param]
    server: ServerProcess = request.getfixturevalue(name)
    return server


def test_the_page_says_what_runs_here_and_its_commands_work(
    either: ServerProcess, tmp_path: Path
) -> None:
    page = httpx.get(either.url + "/").text
    env, (*login, create, listing, log, join, gates) = shown(page)

    assert f"This Accord server (version {__version__}) is running" in page
    if either.auth == "open":
        assert (env, login) == ({"ACCORD_URL": either.url}, [])
        told = {}
    else:
        assert (env, login) == ({}, [["login", f"{either.url}#code=…"]])
        told = {"ACCORD_TOKEN": either.issue_token("olga")}

    def run(words: list[str], session: str = "") -> str:
        known = [session if word == "SESSION" else word for word in words]
        ran = run_accord(*known, cwd=tmp_path, ACCORD_URL=either.url, **told)
        assert ran.code == 0, ran
        return ran.out.strip()

    session = run(create)
    assert session in run(listing)
    run(join, session)
    run(gates)
    run(["session", "end", *create[4:], "SESSION"], session)
    assert "opened the session" in run(log, session)


def test_the_page_keeps_to_itself(either: ServerProcess) -> None:
    answer = httpx.get(either.url + "/?token=eyJhbGciOi")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"} <= {*policy}
    assert "set-cookie" not in answer.headers
    assert "eyJhbGciOi" not in answer.text
    assert "eyJhbGciOi" not in either.log
    assert either.admin_token not in answer.text
    for active in ("<script", "src=", "@import", "url(", "//", "<form"):
        assert active not in answer.text.replace(either.url, "")


def test_where_names_are_believed_no_token_is_asked_for(open_server: ServerProcess) -> None:
    assert "token" not in httpx.get(open_server.url + "/").text.lower()


def test_the_page_says_what_the_sign_in_link_holds(server: ServerProcess) -> None:
    page = " ".join(httpx.get(server.url + "/").text.split())

    assert "<code>#code=</code> is a code that works once: your browser did not send it" in page
    assert f"accord login '{server.url}#code=" in page


def test_a_host_that_is_none_is_not_repeated(server: ServerProcess) -> None:
    answer = httpx.get(server.url + "/", headers={"Host": "<script>alert(1)</script>"})

    assert answer.status_code in {400, 403}
    assert "<script" not in answer.text
