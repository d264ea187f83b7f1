"""Words of agents and people stay words: nothing runs, nothing breaks out, nothing deceives."""

import pytest
from playwright.async_api import Browser, Page, expect

from accord.api.policies import StandingGrantRequest
from tests.helpers.docket.batch_text import item, valid_judgement
from tests.helpers.page.browser import signed_in
from tests.helpers.page.docket_scene import HEAD, SUITE
from tests.helpers.page.hostile import CORPUS, DECEIVING, FORGED_MARKS
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
# Elements that only an HTML string could have made.
FOREIGN = "script, iframe, object, embed, img, math, mglyph, style, b > b, a[href^='javascript']"
OUTSIDE = """() => {
  const contained = ["auto", "scroll", "hidden", "clip"];
  const scrolls = (node) => contained.includes(getComputedStyle(node).overflowX);
  const found = [];
  for (const card of document.querySelectorAll("main article, main li")) {
    const edge = card.getBoundingClientRect();
    for (const each of card.querySelectorAll("*")) {
      let inner = each.parentElement;
      while (inner !== card && !scrolls(inner)) inner = inner.parentElement;
      if (inner !== card) continue;
      const place = each.getBoundingClientRect();
      if (place.width && (place.right > edge.right + 2 || place.left < edge.left - 2))
        found.push(each.outerHTML.slice(0, 120));
    }
  }
  return found;
}"""


async def nothing_broke_out(page: Page) -> None:
    assert await page.locator(f"body :is({FOREIGN})").count() == 0
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert await page.evaluate(OUTSIDE) == []
    assert await page.evaluate(FORGED_MARKS) == []


async def test_corpus_on_home_and_gates(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("<b>bold</b> \u202eeman", "jonas", "maya", "claude")
    for text in CORPUS:
        await session["claude"].propose(
            "".join(letter for letter in f"tool {text}" if letter.isprintable())[:60],
            {"command": text, "path": text[:200], text[:60]: text[:100]},
            category="shell_execute",
            risk="critical",
            description=text[:4000],
        )
    refused = await session["claude"].propose("sh", {}, category="deploy", risk="high")
    await session["jonas"].reject(refused, "<img src=x onerror=alert(11)> \u202eon")
    async with signed_in(browser, page_server, "maya", "approver") as maya:
        dialogs: list[str] = []
        page = await maya.open("/")
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await page.get_by_role("article").wait_for()
        await expect(page.get_by_role("listitem").filter(has_text="claude")).not_to_have_count(0)
        await nothing_broke_out(page)
        for _ in CORPUS[1:]:
            await page.keyboard.press("j")
            await nothing_broke_out(page)
        await page.keyboard.press("o")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        seen = set()
        for _ in CORPUS:
            await nothing_broke_out(page)
            seen.add(await page.get_by_role("article").inner_text())
            await page.keyboard.press("k")
        shown = "\n".join(seen)
        assert not set("\u202e\u200b\u2066\x1b\x07\U000e0041") & set(shown)
        assert "U+202E" in shown
        assert len(seen) > len(DECEIVING)

        await page.set_viewport_size({"width": 360, "height": 780})
        await nothing_broke_out(page)
        await page.goto(page_server.url)
        await (
            page.get_by_role("link", name="critical")
            .first.or_(page.get_by_role("listitem").first)
            .wait_for()
        )
        await nothing_broke_out(page)
        assert dialogs == []


async def test_corpus_on_people_settings_replay_with_grants_and_docket(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("<b>bold</b> \u202e◆ eman", "jonas", "maya", "claude")
    jonas, claude = session["jonas"], session["claude"]
    for text in CORPUS:
        prompt = await jonas.prompt(text[:4000], "claude")
        async with claude.respond(prompt) as out:
            await out.write(text)
    client = await team.client("jonas")
    for name in ("\u25c6 Approved by Accord", "W" * 200):
        request = StandingGrantRequest(agent="claude", count=5, seconds=1800, run=(f"make {name}",))
        await client.give_standing_grant(jonas.id, request)
    words = " ".join(text.replace("\n", " ").replace(">>>", "") for text in CORPUS)
    judged = valid_judgement(
        "A", "drv", steps=[SUITE.replace("Run the suite", "Run <img src=x> ◆")]
    )
    title = words[:400].replace('"', "")
    await jonas.add_context("decision:evil", HEAD + item("A", judged, attrs=f'title="{title}"'))
    for number, text in enumerate(CORPUS[:-1]):
        page_server.admin_request(
            "POST",
            "/admin/invitations",
            {"id": f"evil{number}", "roles": ["driver"], "name": text[:100]},
        )
    screens = {
        "/people": "Who may come in",
        "/settings": "Where you are signed in",
        f"/s/{jonas.id}?at=40": "Back to now",
        f"/docket/{jonas.id}/evil/A": "Run <img src=x>",
    }
    async with signed_in(browser, page_server, "maya", "admin", "driver", "approver") as maya:
        dialogs: list[str] = []
        page = await maya.open("/")
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        for width in (1440, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            for path, shows in screens.items():
                await page.goto(page_server.url + path)
                await expect(page.get_by_text(shows).filter(visible=True).first).to_be_visible()
                await nothing_broke_out(page)
                shown = await page.locator("main").inner_text()
                assert not set("\u202e\u200b\u2066\x1b\x07") & set(shown)
        assert dialogs == []
    await jonas.end("The test is over")


async def test_violation_of_the_policy_is_counted(
    browser: Browser, page_server: ServerProcess
) -> None:
    """What each test counts to zero does count."""
    async with signed_in(browser, page_server, "maya", "approver") as maya:
        page = await maya.open("/")
        await page.get_by_role("heading", level=1, name="Home").wait_for()
        maya.check()
        async with page.expect_console_message(lambda each: "Content Security" in each.text):
            await page.evaluate("document.body.setAttribute('style', 'color: red')")
        with pytest.raises(AssertionError, match="Content Security Policy"):
            maya.check()
        maya.complaints.clear()


async def test_nine_tabs_agree(browser: Browser, page_server: ServerProcess, team: Team) -> None:
    """Browsers allow six connections to a server, and each tab needs what is new."""
    session = await team.session("Tabs", "jonas", "lena", "claude")
    async with signed_in(browser, page_server, "lena", "approver") as lena:
        tabs = [await lena.open("/") for _ in range(9)]
        proposal = await session["claude"].propose("sh", {"command": "ls"}, category="deploy")
        for tab in tabs:
            await expect(tab).to_have_title("(1) Home · Accord")
        await tabs[0].close()
        await session["jonas"].approve(proposal)
        for tab in tabs[1:]:
            await expect(tab).to_have_title("Home · Accord")
