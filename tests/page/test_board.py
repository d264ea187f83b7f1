"""Board: a pact's features and tasks with evidence, and how to begin one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.board_scene import PactLog, bind, pact_of_an_afternoon
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.hostile import CORPUS
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def maya(browser: Browser, page_server: ServerProcess) -> AsyncIterator[Visitor]:
    async with signed_in(browser, page_server, *MAYA, name="Maya Okafor") as someone:
        yield someone


@pytest_asyncio.fixture(loop_scope="module")
async def page(maya: Visitor) -> AsyncIterator[Page]:
    tab = await maya.context.new_page()
    yield tab
    await tab.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pact(team: Team, tmp_path_factory: pytest.TempPathFactory) -> str:
    return await pact_of_an_afternoon(team, tmp_path_factory.mktemp("pact") / ".pact")


async def test_without_a_pact_the_board_says_how_to_begin_one(
    browser: Browser, page_server: ServerProcess
) -> None:
    async with signed_in(browser, page_server, "lena", "approver") as lena:
        page = await lena.open("/board")
        await expect(page.get_by_text("No pact yet.")).to_be_visible()
        await expect(page.get_by_text("accord pact init --project")).to_be_visible()


@pytest.mark.usefixtures("pact")
async def test_tasks_are_walked_and_read_by_keyboard(maya: Visitor, page: Page) -> None:
    await page.goto(f"{maya.url}/")
    await expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("b")
    login = page.get_by_role("region", name="Feature LOGIN-LIMIT")
    await expect(login).to_contain_text("3 of 5 accepted")
    await expect(login).to_contain_text("T44 and T45 are not accepted yet")
    flags = page.get_by_role("region", name="Feature COOKIE-FLAGS")
    await expect(flags).to_contain_text("accord pact merge COOKIE-FLAGS")
    await page.keyboard.press("m")
    card = page.get_by_role("link", name="Survive a Redis restart")
    await expect(page.locator("[data-task]")).to_have_count(1)
    await page.keyboard.press("j")
    await expect(card).to_be_focused()
    await page.keyboard.press("Enter")
    panel = page.get_by_role("complementary", name="Task T44")
    await expect(panel).to_contain_text("38 passed in 3.87s.")
    await expect(panel).to_contain_text("claude did it")
    await expect(panel).to_contain_text("you ask for changes: If it dies in a write?")
    await expect(panel).to_contain_text("accord pact accept T44")
    await page.keyboard.press("Escape")
    await expect(panel).to_have_count(0)
    await page.goto(f"{maya.url}/board/T43")
    accepted = page.get_by_role("complementary", name="Task T43")
    await expect(accepted).to_contain_text("claude did it, Priya Raman accepted it")
    await expect(accepted.get_by_text("accord pact accept")).to_have_count(0)


async def test_hostile_pact_is_inert(maya: Visitor, page: Page, team: Team, tmp_path: Path) -> None:
    log = PactLog(tmp_path / ".pact", "<img src=x onerror=alert(1)>\u202e")
    for number, text in enumerate(CORPUS):
        log.assign(f"X{number}", "EVIL", "claude", "maya", spec=text[:3000])
        log.show(f"X{number}", "EVIL", "claude", 3, text[:3000] or "x", "a")
        log.add("changes_requested", "maya", f"X{number}", "EVIL", ago=2, reason=text[:3000])
    room = await team.session("Hostile", "jonas", "maya", "claude")
    await bind(team, room["maya"].id, log.directory, "hostile-repo")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    for width in (1440, 360):
        await page.set_viewport_size({"width": width, "height": 800})
        for path in ("/board", "/board/X10", "/board/X18"):
            await page.goto(f"{maya.url}{path}?repo=hostile-repo")
            await expect(
                page.get_by_text("X10")
                .filter(visible=True)
                .or_(page.get_by_text("X18").filter(visible=True))
                .first
            ).to_be_visible()
            made = "main :is(script, img, iframe, object, style, math, [onerror])"
            assert await page.locator(made).count() == 0
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            shown = await page.locator("main").inner_text()
            assert not set("\u202e\u200b\u2066\x1b\x07") & set(shown)
    assert dialogs == []


@pytest.mark.usefixtures("pact")
@pytest.mark.parametrize("width", [1440, 360])
async def test_board_is_accessible(maya: Visitor, page: Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for path in ("/board?repo=harbor-api", "/board/T44?repo=harbor-api"):
            await page.goto(maya.url + path)
            title = page.get_by_text("Survive a Redis restart").filter(visible=True)
            await expect(title.first).to_be_visible()
            assert await serious_findings(page) == []
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
