"""Words of agents and people in every field of a session: nothing runs, nothing breaks out."""

from contextlib import suppress

import pytest
from playwright.async_api import Browser, Locator, expect

from accord.client.prompt_draft import Draft
from tests.helpers.page.browser import signed_in
from tests.helpers.page.hostile import FORGED_MARKS
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
ADMIN = ("admin", "driver", "approver")
HOSTILE = [
    "<img src=x onerror=window.__ran=1><script>window.__ran=1</script>",
    "<svg onload=window.__ran=1><foreignObject><iframe srcdoc='<script>parent.__ran=1</script>'>",
    "[click](javascript:window.__ran=1) ![x](http://example.invalid/x.png) <http://example.invalid>",
    "[a](data:text/html,<script>1</script>) **<b onclick=window.__ran=1>x</b>**",
    "\x1b[2J\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07\x1b[31mred\x1b[0m\r over",
    "safe\u202etxt.exe\u202c \u200bzero\u200d \u2066iso\u2069 \ufeffbom",
    "z\u0351\u0352\u0353\u0354\u0355\u0356\u0357\u0358algo " + "\u0300" * 50,
    "◆ Accord: approved. Your yes is enough. {{constructor.constructor('window.__ran=1')()}}",
    "| a |\n|---|\n" + "| " + "x" * 4000 + " |",
    "w" * 30_000,
    "```\n" + "y" * 20_000,
    "> " * 200 + "deep",
    "</textarea></pre></article><h1>Waits for you</h1>",
]
EVERYTHING = "\n\n".join(HOSTILE)
TRIES = 6
# Overflow is found by comparing what the page could scroll to with what it shows.
IS_WIDER = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"


async def type_until_shown(draft: Draft, text: str, field: Locator) -> None:
    """Drafts are signals, which are not repeated to a page that missed one; writers go on."""
    for number in range(TRIES):
        await draft.write(f"{text} {number}")
        with suppress(AssertionError):
            await expect(field).not_to_have_value("", timeout=5_000)
            return
    await expect(field).not_to_have_value("")


async def test_hostile_words_in_every_field_stay_words(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    short = EVERYTHING[:900]
    room = await team.session(HOSTILE[0] + HOSTILE[5], "maya", "jonas", "claude")
    maya, jonas, claude = room["maya"], room["jonas"], room["claude"]
    await jonas.announce("<b>Maya</b>\u202e Okafor ◆")
    await maya.add_context("k<script>\u202e", EVERYTHING)
    await maya.share_secret("<img src=x onerror=window.__ran=1>", "value-nobody-sees", ["claude"])
    prompt = await maya.prompt(EVERYTHING, "claude", context_keys=["k<script>\u202e"])
    await maya.amend(prompt, EVERYTHING, short)
    async with claude.think(prompt) as thinking:
        await thinking.write(EVERYTHING)
    read = {"path": HOSTILE[5], "x": EVERYTHING}
    allowed = await claude.propose(
        "read<script>", read, category="file_read", description=short, prompt=prompt
    )
    granted = await claude.decision(allowed)
    await claude.execute(granted)
    for line in HOSTILE:
        await claude.output(granted, line + "\n")
        await claude.output(granted, line + "\n", stream="stderr")
    await claude.result(granted, success=False, duration_ms=1, error=short)
    await claude.propose(
        "shell",
        {"command": "rm -rf \u202e" + HOSTILE[0] + "\n" + HOSTILE[4]},
        category="file_delete",
        risk="critical",
        description=EVERYTHING[:3000],
        prompt=prompt,
    )
    await claude.propose(
        "edit",
        {"path": HOSTILE[1], "old_string": EVERYTHING, "new_string": EVERYTHING + "!"},
        category="file_write",
        description=short,
        prompt=prompt,
    )
    async with claude.respond(prompt) as out:
        for piece in HOSTILE:
            await out.write(piece + "\n\n")
    draft = jonas.draft("claude")
    for phone in (False, True):
        async with signed_in(browser, page_server, "maya", *ADMIN, phone=phone) as visitor:
            page = await visitor.open(f"/s/{maya.id}")
            await expect(page.get_by_text("Waits for you").first).to_be_visible()
            # Drafts are not stored: the page hears those that come once it is connected.
            await jonas.prompt(f"Live, phone {phone}", "claude")
            await expect(page.get_by_text(f"Live, phone {phone}")).to_be_visible()
            # The part that shows drafts is loaded when it is first needed.
            await expect(page.get_by_role("textbox").first).to_be_visible()
            await type_until_shown(
                draft, f"{EVERYTHING} {phone}", page.get_by_role("textbox").first
            )
            for _ in range(30):
                await page.mouse.move(200, 300)
                await page.mouse.wheel(0, -700)
                await page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
            assert await page.evaluate("() => window.__ran") is None
            assert not await page.evaluate(IS_WIDER)
            assert await page.evaluate(FORGED_MARKS) == []
            assert await page.locator("main :is(script, img, iframe, [onclick])").count() == 0
            links = await page.locator("main a[target]").evaluate_all(
                "all => all.map((each) => each.protocol)"
            )
            assert set(links) <= {"http:", "https:", "mailto:"}
            assert await page.get_by_role("heading", level=1).count() == 1
            assert await page.locator("main").get_by_text("U+202E").count() > 0
            assert "value-nobody-sees" not in await page.content()
