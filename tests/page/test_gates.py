"""Deciding on the page: by mouse, by keys, by touch; and never by accident."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect

from accord.client import Session
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import signed_in, steady
from tests.helpers.page.team import Team, propose_deletion, propose_migration
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")


@asynccontextmanager
async def open_gate(
    team: Team, name: str, **config: object
) -> AsyncIterator[tuple[dict[str, Session], str]]:
    """A session with Maya, Jonas and claude, and a proposal that waits; it ends with the test."""
    session = await team.session(name, "jonas", "maya", "claude", **config)
    try:
        yield session, await propose_deletion(session["claude"])
    finally:
        await session["jonas"].end("The test is over")


async def test_gate_is_approved_by_two_clicks(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "Clicks") as (session, proposal),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        card = page.get_by_role("article", name="Delete var/cache/invoices/2024?")
        await expect(card).to_contain_text("rm -r var/cache/invoices/2024")
        await expect(card).to_contain_text("Your yes is enough.")
        assert await page.title() == "(1) Home · Accord"
        await steady(page)
        await card.get_by_role("button", name="Approve").click()
        await card.get_by_label("Add a word for the record").fill("Caches only.")
        await steady(page)
        await card.get_by_role("button", name="Yes, run exactly this").click()

        granted = await session["claude"].decision(proposal)
        assert granted.approved_by == ("maya",)
        await expect(page.get_by_text("Approved by you.").first).to_be_visible()
        await expect(page.get_by_role("heading", name="Nothing waits for you.")).to_be_visible()
        assert await page.title() == "Home · Accord"


async def test_gate_is_approved_by_keys_alone(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "Keys") as (session, proposal),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        await page.keyboard.press("a")  # nothing is chosen, so nothing is armed
        await page.keyboard.press("Control+Enter")
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()

        await page.keyboard.press("j")
        await page.keyboard.press("a")
        await expect(page.get_by_role("button", name="Yes, run exactly this")).to_be_visible()
        await page.keyboard.press("z")  # any other key disarms
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")

        assert (await session["claude"].decision(proposal)).approved_by == ("maya",)


async def test_rejection_needs_a_reason_that_the_agent_reads(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "No") as (session, proposal),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        reject = page.get_by_role("button", name="Reject", exact=True)
        await expect(reject).to_be_disabled()
        await page.keyboard.type("Not on a Friday")
        await expect(reject).to_be_enabled()
        await page.keyboard.press("Control+Enter")

        with pytest.raises(Exception, match="Not on a Friday"):
            await session["claude"].decision(proposal)
        await expect(page.get_by_text("Not on a Friday").first).to_be_visible()


async def test_missing_vote_holds_the_gate(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "Two", default_gate_quorum={"type": "any", "count": 2}) as (
            session,
            proposal,
        ),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        card = page.get_by_role("article")
        await expect(card).to_contain_text("Your yes, then one more.")
        await page.keyboard.press("j")
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")
        await expect(card).to_contain_text("You said yes")
        await expect(card).to_contain_text("Waits for jonas")

        await session["jonas"].approve(proposal)
        await session["claude"].decision(proposal)
        await expect(page.get_by_role("heading", name="Nothing waits for you.")).to_be_visible()


async def test_gate_page_on_a_phone_takes_two_taps(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Phone", "jonas", "maya", "claude")
    proposal = await propose_migration(session["claude"])
    async with signed_in(browser, page_server, *MAYA, phone=True) as maya:
        home = await maya.open("/")
        await home.get_by_role("link", name="Migrate the staging database?").tap()
        await expect(home.get_by_role("heading", level=1)).to_contain_text("Migrate")
        assert await serious_findings(home) == []
        await steady(home)
        await home.get_by_role("button", name="Approve…").tap()
        sheet = home.get_by_role("dialog")
        await expect(sheet).to_contain_text("uv run alembic -x env=staging upgrade 4c1f9a2e07b3")
        assert await serious_findings(home) == []
        await steady(home)
        await sheet.get_by_role("button", name="Yes").tap()

        assert (await session["claude"].decision(proposal)).approved_by == ("maya",)
        await expect(home.get_by_text("Approved by you.")).to_be_visible()
        assert not await home.evaluate("document.documentElement.scrollWidth > innerWidth")


async def test_observer_sees_the_gate_and_can_do_nothing(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    client = await team.client("jonas")
    async with (
        open_gate(team, "Watched") as (session, _),
        signed_in(browser, page_server, "olga", "observer") as olga,
    ):
        gate = (await client.session(session["jonas"].id)).gates[0].id
        page = await olga.open("/")
        await join_as_observer(page, session["jonas"].id)
        await page.goto(f"{page_server.url}/g/{gate}")
        card = page.get_by_role("article")
        await expect(card).to_contain_text("rm -r var/cache/invoices/2024")
        await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        await expect(page.get_by_role("button", name="Reject…")).to_have_count(0)

        # With the console open, the server refuses.
        refused = await post(
            page, session["jonas"].id, "gate.approve", {"gate": gate, "approver": "olga"}
        )
        assert refused in {400, 403, 409}
        assert (await client.session(session["jonas"].id)).gates[0].id == gate


POST = """async ([session, type, payload]) => {
  const id = crypto.randomUUID();
  const body = { v: 1, id, ts: new Date().toISOString(), session, sender: "olga", type, payload };
  const response = await fetch(`/sessions/${session}/messages`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  return response.status;
}"""


async def post(page: Page, session: str, type: str, payload: object) -> int:
    status: int = await page.evaluate(POST, [session, type, payload])
    return status


async def join_as_observer(page: Page, session: str) -> None:
    who = {
        "id": "olga",
        "name": "Olga",
        "type": "human",
        "roles": ["observer"],
        "transport": "http",
    }
    joined = await post(
        page, session, "session.join", {"participant": who, "supported_versions": [1]}
    )
    assert joined in {200, 201}


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_home_and_gate_are_accessible(
    browser: Browser, page_server: ServerProcess, team: Team, theme: str
) -> None:
    async with (
        open_gate(team, f"Axe {theme}"),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        await page.get_by_role("article").wait_for()
        assert await serious_findings(page) == []
        await page.keyboard.press("j")
        await page.keyboard.press("o")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Delete")
        assert await serious_findings(page) == []


async def test_server_goes_away_and_comes_back(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "Away"),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page, other = await maya.open("/"), await maya.open("/")
        await page.get_by_role("article").wait_for()
        page_server.kill()
        await expect(page.get_by_text("The server is away.").first).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        page_server.restart()

        await expect(page.get_by_text("Caught up.")).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_enabled()
        for tab in (page, other):
            await expect(tab.get_by_role("article")).to_have_count(1)


async def test_session_is_opened_from_home(browser: Browser, page_server: ServerProcess) -> None:
    async with signed_in(browser, page_server, "tomas", "driver", "approver") as tomas:
        page = await tomas.open("/")
        await page.get_by_role("heading", name="Nothing waits for you.").wait_for()
        await page.keyboard.press("n")
        dialog = page.get_by_role("dialog", name="New session")
        await dialog.get_by_label("What is it about?").fill("Search relevance spike")
        await dialog.get_by_label("Two people").check()
        assert await serious_findings(page) == []
        await dialog.get_by_role("button", name="Open it").click()

        await expect(page.get_by_role("heading", level=1)).to_have_text("Search relevance spike")
        await expect(
            page.get_by_role("navigation", name="Main").get_by_text("Search relevance spike")
        ).to_be_visible()


async def test_standing_grant_is_shown_and_ended(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    async with (
        open_gate(team, "Granted") as (session, _),
        signed_in(browser, page_server, *MAYA) as maya,
    ):
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        grant = {"agent": "claude", "run": ["uv run pytest"], "count": 20, "seconds": 1800}
        path = f"/sessions/{session['maya'].id}/standing-grants"
        made = await page.evaluate(SEND, [path, grant])
        assert made in {200, 201}
        await expect(page.get_by_text("0 of 20 used")).to_be_visible()
        assert await serious_findings(page) == []
        await page.get_by_role("button", name="End", exact=True).click()

        await expect(page.get_by_text("0 of 20 used")).to_have_count(0)


SEND = """async ([path, body]) => (await fetch(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
})).status"""
