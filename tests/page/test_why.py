"""Why: decisions by path, commit and words, with approvals, alternatives and conversation."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.hostile import DECEIVING, MARKUP
from tests.helpers.page.team import Team
from tests.helpers.page.why_scene import SHA, commit_of_a_session
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")

TITLE = "Without Redis, refuse admins and let the others in"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def maya(browser: Browser, page_server: ServerProcess) -> AsyncIterator[Visitor]:
    async with signed_in(browser, page_server, "maya", "driver", name="Maya Okafor") as someone:
        yield someone


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(team: Team) -> str:
    return await commit_of_a_session(team)


@pytest_asyncio.fixture(loop_scope="module")
async def page(maya: Visitor) -> AsyncIterator[Page]:
    tab = await maya.context.new_page()
    yield tab
    await tab.close()


async def test_without_a_record_it_says_how_to_get_one(
    page: Page, page_server: ServerProcess
) -> None:
    await page.goto(f"{page_server.url}/why")
    await expect(page.get_by_role("heading", name="No decision is on record yet.")).to_be_visible()


async def test_a_line_leads_to_decision_approval_and_alternative(
    page: Page, page_server: ServerProcess, session: str
) -> None:
    await page.goto(f"{page_server.url}/why")
    await expect(page.get_by_role("article")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("src/auth/limits.py:38")
    await page.keyboard.press("Enter")

    article = page.get_by_role("article")
    await expect(article.get_by_role("heading", name=TITLE)).to_be_visible()
    await expect(article).to_contain_text("Who gets in?")
    await expect(article).to_contain_text("“Admin logins are the target.”")
    await expect(page.get_by_text("accord why src/auth/limits.py:38")).to_be_visible()
    replay = article.get_by_role("link", name="Replay from here")
    assert f"/s/{session}?at=" in (await replay.get_attribute("href") or "")


@pytest.mark.parametrize("at", [SHA[:8], "redis admins", "auth/limits.py"])
async def test_commit_words_and_path_find_the_same(
    page: Page, page_server: ServerProcess, session: str, at: str
) -> None:
    await page.goto(f"{page_server.url}/why?at={at}")
    await expect(page.get_by_role("article").get_by_role("heading", name=TITLE)).to_be_visible()


async def test_nothing_found_says_why_that_can_be(
    page: Page, page_server: ServerProcess, session: str
) -> None:
    await page.goto(f"{page_server.url}/why?at=src/other.py")
    await expect(page.get_by_text("Nothing is on record for this.")).to_be_visible()


async def test_others_find_nothing(
    browser: Browser, page_server: ServerProcess, session: str
) -> None:
    async with signed_in(browser, page_server, "olga", "observer") as olga:
        page = await olga.open(f"/why?at={SHA}")
        await expect(page.get_by_text("Nothing is on record for this.")).to_be_visible()


async def test_hostile_words_are_inert_and_it_is_accessible(
    page: Page, page_server: ServerProcess, team: Team
) -> None:
    await commit_of_a_session(team, " ".join((*MARKUP, *DECEIVING)), "4d" * 20)
    await page.goto(f"{page_server.url}/why?at={'4d' * 20}")
    await expect(page.get_by_role("article")).to_be_visible()
    made = "document.querySelectorAll('main img, main script, main iframe, main style').length"
    assert await page.evaluate(made) == 0
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for width in (1440, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await serious_findings(page) == []
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
