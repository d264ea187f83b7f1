"""A session and a thread with one thumb, 360 pixels wide: everything is tapped."""

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.helpers.page.browser import signed_in, steady
from tests.helpers.page.team import Team, propose_migration
from tests.helpers.page.threads_scene import event
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
# WCAG 2.5.8: less cannot be hit with a thumb.
MIN_TARGET = 24


async def tap(target: Locator) -> None:
    """A tap on something that a thumb can hit, and that is not beside the screen."""
    box = await target.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= MIN_TARGET, box
    await target.tap()


async def fits(page: Page) -> None:
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def test_session_is_prompted_answered_stopped_and_decided_by_touch(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Touched", "maya", "jonas", "claude")
    async with signed_in(browser, page_server, *MAYA, phone=True) as maya:
        page = await maya.open("/")
        await tap(page.get_by_role("link", name="Touched").first)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Touched")
        field = page.get_by_label("Prompt, written together")
        await tap(field)
        await expect(field).to_be_focused()
        await page.keyboard.insert_text("Migrate the database")
        await tap(page.get_by_role("button", name="Send"))
        await expect(page.get_by_role("feed").get_by_text("Migrate the database")).to_be_visible()
        await expect(field).to_have_value("")
        await fits(page)

        said = [each async for each in (await team.client("maya")).history(room["maya"].id)]
        prompts = [each.id for each in said if each.type == "prompt.submit"]
        out = room["claude"].respond(prompts[-1])
        await out.__aenter__()
        await out.write("I begin")
        await tap(page.get_by_role("button", name="Stop claude"))
        await expect(page.get_by_text("claude is stopped. A prompt lets it go on.")).to_be_visible()
        await tap(field)
        await page.keyboard.insert_text("Go on")
        await tap(page.get_by_role("button", name="Send"))
        await expect(page.get_by_text("claude is stopped.")).to_have_count(0)

        proposal = await propose_migration(room["claude"])
        card = page.get_by_role("article", name="Migrate the staging database?")
        await steady(page)
        await tap(card.get_by_role("button", name="Approve"))
        await steady(page)
        await tap(page.get_by_role("button", name="Yes").last)
        assert (await room["claude"].decision(proposal)).approved_by == ("maya",)

        await tap(page.get_by_role("button", name="Panel"))
        await expect(page.get_by_role("complementary", name="Room")).to_be_visible()
        await fits(page)
    await room["maya"].end("The test is over")


async def test_thread_is_opened_answered_and_its_finding_closed_by_touch(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    codex = await team.client("codex")
    thread = (await codex.threads.create("Touched review", ["maya", "claude"])).thread_id
    await codex.threads.post(
        thread, "It grows without end.", **event("finding_reported", severity="high")
    )
    async with signed_in(browser, page_server, *MAYA, phone=True) as maya:
        page = await maya.open("/")
        screens = page.get_by_role("navigation", name="Screens")
        await tap(screens.get_by_role("link", name="Threads"))
        await tap(page.get_by_role("link", name="Touched review"))
        field = page.get_by_label("Message", exact=True)
        await tap(field)
        await expect(field).to_be_focused()
        await page.keyboard.insert_text("Where?")
        await tap(page.get_by_role("button", name="Post"))
        await expect(page.get_by_text("Where?")).to_be_visible()
        await fits(page)
        await tap(page.locator("[data-finding]").get_by_role("button", name="Verified"))
        await expect(page.locator("[data-finding]")).to_contain_text("verified")
        assert (await codex.threads.summary(thread)).open_items == ()
        await tap(screens.get_by_role("link", name="Home"))
        await expect(page.get_by_role("heading", level=1)).to_have_text("Home")
        await fits(page)
