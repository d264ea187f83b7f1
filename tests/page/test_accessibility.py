"""Screens that no other test looks at so: axe in both themes, twice the size, and no motion."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from accord.api.policies import StandingGrantRequest
from accord.client import Session
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.docket_scene import release
from tests.helpers.page.team import Team, propose_migration
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
TESTS = StandingGrantRequest(agent="claude", count=5, seconds=1800, run=("uv run pytest *",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def room(team: Team) -> dict[str, Session]:
    """A session with a docket, a grant, an answer and a gate."""
    room = await release(team, "Release 42")
    await (await team.client("jonas")).give_standing_grant(room["jonas"].id, TESTS)
    prompt = await room["maya"].prompt("Limit the login", "claude")
    async with room["claude"].respond(prompt) as out:
        await out.write("# Done\n\n- `a`\n\n```py\nx = 1\n```\n")
    await propose_migration(room["claude"])
    return room


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def maya(browser: Browser, page_server: ServerProcess) -> AsyncIterator[Visitor]:
    async with signed_in(browser, page_server, *MAYA, name="Maya Okafor") as someone:
        yield someone


async def is_accessible_in_both_themes(page: Page) -> None:
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        assert await serious_findings(page) == [], theme


@pytest.mark.parametrize(
    ("path", "shows"),
    [
        ("/s/{id}?at=3", "Back to now"),
        ("/docket", "thing can be done now"),
        ("/docket/{id}/release/ROTATE", "differ too much"),
        ("/grants", "of 5 used"),
    ],
)
async def test_screen_is_accessible_in_both_themes(
    maya: Visitor, room: dict[str, Session], path: str, shows: str
) -> None:
    page = await maya.open(path.format(id=room["maya"].id))
    await expect(page.get_by_text(shows).first).to_be_visible()
    await is_accessible_in_both_themes(page)
    await page.close()


@pytest.mark.parametrize(
    ("path", "opener", "dialog"),
    [
        ("/", "Control+k", "Jump"),
        ("/", "?", "Keys"),
        ("/", "n", "New session"),
        ("/grants", "n", "New standing grant"),
        ("/people", "Invite…", "Invite a person"),
        ("/people", "Remove…", "Remove"),
        ("/threads", "New thread", "thread"),
        ("/s/{id}", "Share a secret…", "Share a secret"),
        ("/s/{id}/forks", "f", "New fork"),
    ],
)
async def test_dialog_is_accessible_in_both_themes_and_gives_the_focus_back(
    maya: Visitor, room: dict[str, Session], path: str, opener: str, dialog: str
) -> None:
    page = await maya.open(path.format(id=room["maya"].id))
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    if " " in opener or opener.endswith("…"):
        if "secret" in opener:
            await page.get_by_role("button", name="Put something on the shelf").click()
        await page.get_by_role("button", name=opener).first.click()
    else:
        await page.get_by_role("main").press(opener)
    shown = page.get_by_role("dialog", name=re.compile(dialog))
    await expect(shown).to_be_visible()
    await is_accessible_in_both_themes(page)
    await page.keyboard.press("Escape")
    await expect(shown).to_have_count(0)
    await page.close()


async def test_session_and_gate_are_accessible_on_a_dark_phone(
    browser: Browser, page_server: ServerProcess, room: dict[str, Session]
) -> None:
    async with signed_in(browser, page_server, *MAYA, theme="dark", phone=True) as someone:
        page = await someone.open(f"/s/{room['maya'].id}")
        await expect(page.get_by_text("Migrate the staging database?").first).to_be_visible()
        assert await serious_findings(page) == []
        await page.goto(page_server.url)
        await page.get_by_role("link", name="Migrate the staging database?").tap()
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Migrate")
        assert await serious_findings(page) == []


# What could be pressed and is beside the screen once it was scrolled to; what cuts its own words.
CUT = """() => {
  const found = [];
  for (const each of document.querySelectorAll("main :is(a[href], button, input, textarea, h1)")) {
    if (!each.checkVisibility()) continue;
    each.scrollIntoView({ block: "center", inline: "nearest" });
    const at = each.getBoundingClientRect();
    const outside = at.left < -1 || at.right > innerWidth + 1
      || at.bottom < 1 || at.top > innerHeight - 1;
    const { overflowX, textOverflow } = getComputedStyle(each);
    const cuts = each.matches("button, h1") && textOverflow !== "ellipsis"
      && ["hidden", "clip"].includes(overflowX) && each.scrollWidth > each.clientWidth + 1;
    if (at.width && (outside || cuts)) found.push(each.outerHTML.slice(0, 150));
  }
  return found;
}"""
SCREENS = {
    "/": "Migrate the staging database?",
    "/s/{id}": "Migrate the staging database?",
    "/s/{id}?at=3": "Back to now",
    "/s/{id}/forks": "No fork yet.",
    "/docket/{id}/release/ROTATE": "differ too much",
    "/grants": "of 5 used",
    "/people": "Who may come in",
    "/settings": "Where you are signed in",
}
ZOOMED = {"width": 720, "height": 450}


async def test_at_twice_the_size_nothing_is_cut_and_nothing_scrolls_sideways(
    browser: Browser, page_server: ServerProcess, room: dict[str, Session]
) -> None:
    """A browser that zooms to 200 % gives half as many pixels, each twice as large."""
    async with signed_in(browser, page_server, *MAYA, device_scale_factor=2) as someone:
        page = await someone.open("/")
        await page.set_viewport_size(ZOOMED)  # type: ignore[arg-type]
        for path, shows in SCREENS.items():
            await page.goto(page_server.url + path.format(id=room["maya"].id))
            await expect(page.get_by_text(shows).filter(visible=True).first).to_be_visible()
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            assert await page.evaluate(CUT) == [], path


# Everything that moves in any frame, by what moves it.
WATCH_MOTION = """
window.moved = [];
const look = () => {
  for (const each of document.getAnimations())
    if (each.playState === "running" && each.effect.getComputedTiming().activeDuration > 0)
      window.moved.push(each.animationName ?? each.transitionProperty ?? "script");
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
THOUGHTS = "Two counters, one for each account and one for each address."


@pytest.mark.parametrize(("wish", "moved"), [("no-preference", {"transform"}), ("reduce", set())])
async def test_with_reduced_motion_nothing_moves(
    browser: Browser, page_server: ServerProcess, team: Team, wish: str, moved: set[str]
) -> None:
    """The first row shows that frames are watched: without the wish, a thought turns its arrow."""
    room = await team.session(f"Motion, {wish}", "maya", "claude")
    prompt = await room["maya"].prompt("Limit the login", "claude")
    async with signed_in(browser, page_server, *MAYA, reduced_motion=wish) as someone:
        await someone.context.add_init_script(WATCH_MOTION)
        page = await someone.open("/")
        await page.get_by_role("link", name=f"Motion, {wish}").first.click()
        await expect(page.get_by_text("Limit the login")).to_be_visible()
        async with room["claude"].think(prompt) as thinking:
            await thinking.write(THOUGHTS)
            await expect(page.get_by_text(THOUGHTS)).to_be_visible()
        arrow = page.get_by_role("button", name="Thought")
        await arrow.click()
        await expect(arrow).to_have_attribute("aria-expanded", "true")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("dialog", name="Jump")).to_be_visible()
        await page.keyboard.press("Escape")
        if moved:
            await page.wait_for_function("window.moved.length > 0")
        assert set(await page.evaluate("window.moved")) == moved
