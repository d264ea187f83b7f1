"""Docket: what the rules say of each item, who judged it apart, what holds it, and its gate."""

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.docket.batch_text import item, valid_judgement
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import signed_in
from tests.helpers.page.docket_scene import HEAD, SUITE, release
from tests.helpers.page.hostile import CORPUS
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")


async def test_judges_who_differ_hold_an_item_and_the_page_names_blocker_and_gate(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await release(team, "Release 42")
    async with signed_in(browser, page_server, *MAYA, name="Maya Okafor") as maya:
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        await page.keyboard.press("g")
        await page.keyboard.press("d")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Docket")
        await expect(page.get_by_text("One thing can be done now.")).to_be_visible()
        rows = page.get_by_role("row")
        await expect(rows.filter(has_text="DEPLOY: ")).to_contain_text("Waits for TESTS")
        await expect(rows.filter(has_text="ROTATE")).to_contain_text("The judges differ")
        assert await serious_findings(page) == []

        await page.get_by_role("link", name="Home", exact=False).first.click()
        await page.locator(f'a[href="/docket/{room["maya"].id}/release/ROTATE"]').click()
        panel = page.get_by_role("complementary", name="Item ROTATE")
        await expect(panel).to_contain_text("differ too much: nothing runs")
        await expect(panel.get_by_role("row", name="Verdict")).to_contain_text("Do now")
        await expect(panel.get_by_role("row", name="Verdict")).to_contain_text("Discard")
        await expect(panel.get_by_role("columnheader")).to_contain_text(["", "jonas", "Maya"])
        await expect(panel).to_contain_text("claude waits with shell.")
        await expect(panel).to_contain_text("a person removes one of the judgements")
        assert await serious_findings(page) == []

        await page.get_by_role("link", name="Gate open: waits for you").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("uv run pytest -q")
        await page.go_back()
        await expect(page).to_have_url(f"{page_server.url}/docket/{room['maya'].id}/release/ROTATE")
    await room["jonas"].end("The test is over")


async def test_docket_is_empty_for_whoever_is_in_no_such_session_and_hostile_words_are_inert(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Hostile docket", "jonas", "maya", "claude")
    words = " ".join(text.replace("\n", " ").replace(">>>", "") for text in CORPUS)[:400]
    judged = valid_judgement("A", "drv", steps=[SUITE.replace("Run the suite", "Run <img src=x>")])
    batch = HEAD + item("A", judged, attrs=f'title="{words.replace(chr(34), "")}"')
    await room["jonas"].add_context("decision:hostile", batch)
    async with (
        signed_in(browser, page_server, *MAYA) as maya,
        signed_in(browser, page_server, "lena", "approver") as lena,
    ):
        page = await maya.open(f"/docket/{room['maya'].id}/hostile/A")
        await expect(page.get_by_role("complementary")).to_contain_text("Run <img src=x>")
        await expect(page.locator("main img")).to_have_count(0)
        other = await lena.open(f"/docket/{room['maya'].id}/hostile")
        await expect(other.get_by_role("alert")).to_be_visible()
        await other.goto(f"{page_server.url}/docket")
        await expect(other.get_by_text("Nothing is on the docket.")).to_be_visible()
    await room["jonas"].end("The test is over")
