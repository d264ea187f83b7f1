"""`GET /decisions`: what is on record about commits, for members of their sessions alone."""

from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess

SECRET = "AKIAIOSFODNN7EXAMPLE"


class Scene(NamedTuple):
    """A session with two commits, in a repository of its own: tests share a server."""

    session: str
    repo: str
    sha: str
    later: str


async def commit(who: HttpClient, scene: Scene, sha: str, *files: str) -> None:
    facts = {"repo": scene.repo, "session": scene.session, "sha": sha, "files": list(files)}
    response = await who.http.post("/git/commit-created", json=facts)
    assert response.status_code == 200, response.text


async def prompt(who: HttpClient, session: str, words: str) -> None:
    content = {"content": words, "target_agent": "bot", "contributors": [], "context_keys": []}
    await who.send("prompt.submit", session, content)


async def found(who: HttpClient, at: str = "", limit: int = 100) -> dict[str, Any]:
    response = await who.http.get("/decisions", params={"at": at, "limit": limit})
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


def shas(answer: dict[str, Any], scene: Scene) -> list[str]:
    return [each["sha"] for each in answer["decisions"] if each["session"] == scene.session]


@pytest.fixture
async def scene(alice: HttpClient, signed: ServerProcess) -> Scene:
    bot = HttpClient.with_token(signed, "bot", kind="agent", roles=["driver"])
    id = await alice.create()
    await bot.join(id, kind="agent")
    await bot.close()
    await prompt(alice, id, f"Limit the logins. The key is {SECRET}")
    made = Scene(id, f"repository-{uuid4().hex}", new_sha(), new_sha())
    await commit(alice, made, made.sha, "src/auth/limits.py", "docs/limits.md")
    await prompt(alice, id, "Round Retry-After up")
    await commit(alice, made, made.later, "src/auth/retry.py")
    return made


def new_sha() -> str:
    return f"{uuid4().hex}{uuid4().hex}"[:40]


async def test_decisions_are_found_by_path_commit_and_id(alice: HttpClient, scene: Scene) -> None:
    newest = await found(alice)
    assert (newest["kind"], shas(newest, scene)) == ("newest", [scene.later, scene.sha])

    by_line = await found(alice, "src/auth/limits.py:38")
    read = (by_line["kind"], by_line["path"], by_line["line"])
    assert read == ("path", "src/auth/limits.py", "38")
    assert shas(by_line, scene) == [scene.sha]
    assert shas(await found(alice, "src/auth"), scene) == [scene.later, scene.sha]
    by_commit = await found(alice, scene.sha)
    assert shas(by_commit, scene) == [scene.sha]
    assert shas(await found(alice, by_commit["decisions"][0]["id"]), scene) == [scene.sha]
    assert shas(await found(alice, "nothing of the kind"), scene) == []


async def test_letters_like_a_commit_are_words_if_no_commit_begins_so(
    alice: HttpClient, scene: Scene
) -> None:
    await prompt(alice, scene.session, "Another one")
    sha = new_sha()
    await commit(alice, scene, sha, "migrations/4c1f9a2e07b3")

    answer = await found(alice, "4c1f9a2e07b3")
    assert (answer["kind"], shas(answer, scene)) == ("words", [sha])


async def test_detail_has_the_conversation_without_secrets(alice: HttpClient, scene: Scene) -> None:
    [entry] = (await found(alice, scene.sha))["decisions"]
    detail = (await alice.http.get(f"/decisions/{entry['id']}")).json()

    assert detail["session"] == scene.session
    assert detail["files"] == ["src/auth/limits.py", "docs/limits.md"]
    assert "Limit the logins" in detail["conversation"][0]["content"]
    assert SECRET not in str(detail)
    assert detail["approvals"] == []
    assert (detail["stream"], len(detail["hash"])) == (f"room/{scene.session}", 64)


async def test_others_find_nothing_and_are_not_told_that_there_is_something(
    alice: HttpClient, bob: HttpClient, scene: Scene
) -> None:
    [entry] = (await found(alice, scene.sha))["decisions"]
    assert shas(await found(bob), scene) == []
    assert shas(await found(bob, scene.sha), scene) == []
    stranger = await bob.http.get(f"/decisions/{entry['id']}")
    unknown = await bob.http.get("/decisions/dec_unknown")
    assert (stranger.status_code, unknown.status_code) == (404, 404)
    assert stranger.json()["error"]["code"] == unknown.json()["error"]["code"]

    await bob.join(scene.session)
    assert shas(await found(bob), scene) == [scene.later, scene.sha]


async def test_a_list_has_a_bound(alice: HttpClient, scene: Scene) -> None:
    answer = await found(alice, limit=1)
    assert (shas(answer, scene), answer["has_more"]) == ([scene.later], True)
    refused = await alice.http.get("/decisions", params={"limit": 101})
    assert refused.status_code == 400
