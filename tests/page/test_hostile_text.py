"""Words of agents and people stay words: nothing runs, nothing breaks out, nothing deceives."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.helpers.page.browser import signed_in
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
