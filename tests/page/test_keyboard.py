"""The page without a mouse: every screen is reached, and everything on it that can be pressed."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.board_scene import pact_of_an_afternoon
from tests.helpers.page.browser import signed_in
from tests.helpers.page.docket_scene import release
from tests.helpers.page.team import Team, propose_deletion
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
WALKS = 5
SCREENS = ("Home", "Why", "Board", "Threads", "Docket", "Grants", "People", "Settings")
HEADINGS = {"Grants": "Standing grants"}
# By the screen on which it opens: the key, or the button on which Enter is pressed.
DIALOGS = {
    "/": {"n": "New session", "Shift+?": "Keys"},
    "/grants": {"n": "New standing grant"},
    "/people": {"Invite…": "Invite a person"},
    "/threads": {"New thread": "New thread"},
}
# What the focus is on now, and whether it or what is around it shows that; null outside of `root`.
FOCUSED = """(root) => {
  const at = document.activeElement;
  if (!at?.closest(root) || at.matches(root)) return null;
  const shows = (each) => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  };
  const around = at.closest("form, label") ?? at;
  const place = [...document.querySelectorAll("*")].indexOf(at);
  return { key: `${place} ${at.outerHTML.slice(0, 300)}`, seen: shows(at) || shows(around) };
}"""
# Everything there that a mouse could press, and that is not left out on purpose.
PRESSABLE = """(root) => [...document.querySelectorAll("a[href], button, input, textarea")]
  .filter((each) => each.closest(root))
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
        found = await page.evaluate(FOCUSED, "main")
        if found is None:
            break
        assert found["seen"], found["key"]
        reached.append(found["key"])
    return reached


async def reaches_everything(page: Page) -> None:
    """Content may still arrive during the first walk, so a few are allowed."""
    before, reached = 0, list[str]()
    for _ in range(WALKS):
        before = await page.evaluate(PRESSABLE, "main")
        reached = await tabbed(page)
        if len(reached) >= await page.evaluate(PRESSABLE, "main") == before > 0:
            return
    pytest.fail(f"{before} can be pressed, Tab reaches {len(reached)}: {reached}")


async def test_every_screen_is_reached_and_pressed_without_the_mouse(
    browser: Browser, page_server: ServerProcess, team: Team, tmp_path: Path
) -> None:
    await pact_of_an_afternoon(team, tmp_path / ".pact")
    docket = await release(team, "Release 43")
    session = await team.session("Keys everywhere", "jonas", "maya", "claude")
    proposal = await propose_deletion(session["claude"])
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("article").first.wait_for()
        for screen in SCREENS:
            await jump(page, screen)
            heading = page.get_by_role("heading", level=1)
            await expect(heading).to_contain_text(HEADINGS.get(screen, screen))
            await reaches_everything(page)

        await jump(page, "Keys everywhere")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Keys everywhere")
        await page.get_by_role("textbox", name="Prompt, written together").wait_for()
        await reaches_everything(page)
        await page.get_by_role("link", name="Replay", exact=True).press("Enter")
        await expect(page.get_by_role("slider", name="Moment of the session")).to_be_visible()
        await reaches_everything(page)
        await page.keyboard.press("Escape")
        await page.get_by_role("textbox", name="Prompt, written together").wait_for()
        await page.get_by_role("main").press("c")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Forks")
        await reaches_everything(page)

        await jump(page, "Delete var/cache")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Delete")
        await page.get_by_role("article").focus()
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")
        assert (await session["claude"].decision(proposal)).approved_by == ("maya",)
    for each in (session, docket):
        await each["jonas"].end("The test is over")


async def walks_dialog(page: Page, name: str) -> None:
    """`Tab` reaches all of it and shows where; Escape closes it."""
    dialog = page.get_by_role("dialog", name=name)
    await expect(dialog).to_be_visible()
    count = await page.evaluate(PRESSABLE, "dialog[open]")
    reached = set[str]()
    for _ in range(2 * count + 4):
        found = await page.evaluate(FOCUSED, "dialog[open]")
        if found:
            assert found["seen"], found["key"]
            reached.add(found["key"])
        await page.keyboard.press("Tab")
    assert len(reached) >= count, reached
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_every_dialog_is_opened_walked_and_closed_without_the_mouse(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Dialogs by keys", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        for path, dialogs in DIALOGS.items():
            await page.goto(page_server.url + path)
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            for opener, name in dialogs.items():
                if opener in {"n", "Shift+?"}:
                    await page.get_by_role("main").press(opener)
                else:
                    await page.get_by_role("button", name=opener).press("Enter")
                await walks_dialog(page, name)
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
