"""A team's afternoon, for pictures and tests of whole screens: what waits and what happened."""

from accord.client import Session
from tests.helpers.page.team import Team, propose_deletion, propose_migration

SECURITY = {"type": "label", "label": "security", "count": 1}
COMPOUND = {"type": "all_of", "rules": [SECURITY, {"type": "any", "count": 2}]}


async def afternoon(team: Team) -> dict[str, Session]:
    """Several sessions; returns the one about the login, by member."""
    await decided_before(team)
    login = await rate_limit_the_login(team)
    await invoices(team)
    await team.session("Python 3.13", "maya", "gemini")
    await stopped_agent(team)
    return login


async def rate_limit_the_login(team: Team) -> dict[str, Session]:
    login = await team.session(
        "Rate-limit the login", "jonas", "maya", "priya", "claude", default_gate_quorum=COMPOUND
    )
    await login["maya"].prompt(
        "Logins are being brute-forced. Allow 5 tries a minute for each account and each address, "
        "then back off. It has to keep working when Redis is down.",
        "claude",
    )
    proposal = await propose_migration(login["claude"])
    await login["priya"].approve(proposal, "Downgrade works on a copy.")
    return login


async def invoices(team: Team) -> None:
    export = await team.session("Invoice PDF export", "maya", "jonas", "codex")
    await propose_deletion(export["codex"])
    await export["codex"].propose(
        "edit",
        {
            "path": "pyproject.toml",
            "old_string": '    "uvicorn>=0.30",\n]',
            "new_string": '    "uvicorn>=0.30",\n    "weasyprint==66.0",\n]',
        },
        category="file_write",
        risk="low",
        description="PDF rendering without a browser",
    )


async def stopped_agent(team: Team) -> None:
    flaky = await team.session("Flaky checkout test", "jonas", "maya", "gemini")
    await flaky["jonas"].interrupt("stop", "Runs the whole suite again and again", "gemini")


async def decided_before(team: Team) -> None:
    """Gates that ended: approved, and rejected with a reason."""
    cookies = await team.session("Cookie banner", "jonas", "maya", "lena", "codex")
    yes = await cookies["codex"].propose(
        "shell", {"command": "uv run pytest -q"}, category="shell_execute"
    )
    await cookies["jonas"].approve(yes)
    no = await cookies["codex"].propose(
        "shell",
        {"command": "git push origin main"},
        category="deploy",
        risk="high",
        description="Ships the new banner",
    )
    await cookies["lena"].reject(no, "Not on a Friday")
    await cookies["jonas"].end("Done for now")
