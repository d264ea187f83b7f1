"""A commit with its decision: what was asked, approved and rejected, as a hook reports it."""

import httpx

from tests.helpers.page.team import Team

SHA = "3c99e21" + "0" * 33


async def commit_of_a_session(team: Team, words: str = "", sha: str = SHA) -> str:
    """Returns the session: one call approved with a word, one rejected, then a commit."""
    room = await team.session("Login without Redis", "jonas", "maya", "priya", "claude")
    prompt = "When Redis is down we cannot count. Who gets in?"
    await room["maya"].prompt(f"{prompt} {words}".strip(), "claude")
    no = await room["claude"].propose(
        "edit",
        {"path": "src/auth/limits.py", "old_string": "a", "new_string": "b"},
        category="file_write",
        description=words or "Let everyone in",
    )
    await room["priya"].reject(no, words or "Admin logins are the target.")
    yes = await room["claude"].propose(
        "edit",
        {"path": "src/auth/limits.py", "old_string": "a", "new_string": "c"},
        category="file_write",
        description=words or "Without Redis, refuse admins and let the others in",
    )
    await room["priya"].approve(yes, words or "Closed for admins, please.")
    await room["jonas"].end("Done")
    token = team.server.issue_token("jonas", "human", ("driver", "approver"), ())
    facts = {
        "repo": "harbor-api",
        "session": room["jonas"].id,
        "sha": sha,
        "files": [words[:200] or "src/auth/limits.py", "tests/auth/test_limits.py"],
        "branch": "fix/login-limit",
    }
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=team.server.url, headers=headers) as http:
        answer = await http.post("/git/commit-created", json=facts)
        assert answer.status_code == 200, answer.text
    return room["jonas"].id
