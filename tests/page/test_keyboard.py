"""The page without a mouse: every screen is reached, and everything on it that can be pressed."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import signed_in
from tests.helpers.page.team import Team, propose_deletion
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
WALKS = 5
SCREENS = ("Home", "Why", "Threads", "People", "Settings")
# What the focus is on now, and whether it or what is around it shows that; null outside of `main`.
FOCUSED = """() => {
  const at = document.activeElement;
  if (!at?.closest("main") || at.id === "main") return null;
  const shows = (each) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  };
  const around = at.closest("form, label") ?? at;
  return { key: at.outerHTML.slice(0, 300), seen: shows(at) || shows(around) };
}"""
# Everything in `main` that a mouse could press, and that is not left out on purpose.
PRESSABLE = """() => [...document.querySelectorAll("main :is(a[href], button, input, textarea)")]
  .filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility())
  .filter((each) => each.type !== "radio" || each.checked).length"""


async def jump(page: Page, words: str) -> None:
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Jump to")).to_be_focused()
    await page.keyboard.type(words)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name="Jump")).to_have_count(0)


async def tabbed(page: Page) -> list[str]:
    """What `Tab` reaches on this screen; each place shows the focus."""
    await page.locator("main").focus()
    reached: list[str] = []
    for _ in range(200):
        await page.keyboard.press("Tab")
        found = await page.evaluate(FOCUSED)
        if found is None:
            break
        assert found["seen"], found["key"]
        reached.append(found["key"])
    return reached


async def reaches_everything(page: Page) -> None:
    """Content may still arrive during the first walk, so a few are allowed."""
    before, reached = 0, list[str]()
    for _ in range(WALKS):
        before = await page.evaluate(PRESSABLE)
        reached = await tabbed(page)
        if len(reached) >= await page.evaluate(PRESSABLE) == before > 0:
            return
    pytest.fail(f"{before} can be pressed, Tab reaches {len(reached)}: {reached}")


async def test_every_screen_is_reached_and_pressed_without_the_mouse(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Keys everywhere", "jonas", "maya", "claude")
    proposal = await propose_deletion(session["claude"])
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        for screen in SCREENS:
            await jump(page, screen)
            await expect(page.get_by_role("heading", level=1)).to_contain_text(screen)
            await reaches_everything(page)

        await jump(page, "Keys everywhere")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Keys everywhere")
        await page.get_by_role("textbox", name="Prompt, written together").wait_for()
        await reaches_everything(page)

        await jump(page, "Delete var/cache")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Delete")
        await page.get_by_role("article").focus()
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")
        assert (await session["claude"].decision(proposal)).approved_by == ("maya",)
    await session["jonas"].end("The test is over")


async def test_jump_lists_what_waits_sessions_and_commands(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Jumped to", "jonas", "maya", "claude")
    await propose_deletion(session["claude"])
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("article").wait_for()
        await page.keyboard.press("Control+k")
        options = page.get_by_role("option")
        await expect(options.first).to_contain_text("Delete var/cache/invoices/2024?")
        await expect(options.first).to_contain_text("Waits for you")
        assert await serious_findings(page) == []
        await page.keyboard.press("ArrowDown")
        await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        await page.keyboard.type("new sess")
        await expect(options.first).to_contain_text("New session")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="New session")).to_be_visible()
        await page.keyboard.press("Escape")
        await jump(page, "src/auth/limits.py:38")
        await expect(page).to_have_url(f"{page_server.url}/why?at=src%2Fauth%2Flimits.py%3A38")
    await session["jonas"].end("The test is over")
