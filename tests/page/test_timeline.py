"""The timeline shows the server's order, and leaves out what is not for its reader."""

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.page.browser import signed_in
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
JONAS = ("jonas", "driver", "approver")
SAY = """async ([session, text, ts]) => (await fetch(`/sessions/${session}/messages`, {
  method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({
    v: 1, id: crypto.randomUUID(), ts, session, sender: "maya", type: "prompt.submit",
    payload: { content: text, target_agent: "claude", contributors: ["maya"], context_keys: [] },
  }),
})).status"""


@proves("OPEN-38")
async def test_wrong_clock_of_a_sender_does_not_change_the_order(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Clocks", "jonas", "maya", "claude")
    await session["jonas"].prompt("Said first", "claude")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open(f"/s/{session['maya'].id}")
        await expect(page.get_by_text("Said first")).to_be_visible()
        said = [session["maya"].id, "Said second", "2001-01-01T00:00:00Z"]
        assert await page.evaluate(SAY, said) in {200, 201}
        await session["jonas"].prompt("Said third", "claude")
        await expect(page.get_by_text("Said third")).to_be_visible()
        for _ in range(2):  # live, and as the server tells it later
            words = await page.get_by_text("Said ").all_inner_texts()
            assert words == ["Said first", "Said second", "Said third"]
            await page.reload()
            await expect(page.get_by_text("Said third")).to_be_visible()


@proves("UNI-12")
async def test_thinking_for_others_leaves_no_trace_live_and_later(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Weighing", "jonas", "maya", "claude")
    async with (
        signed_in(browser, page_server, *MAYA) as maya,
        signed_in(browser, page_server, *JONAS) as jonas,
    ):
        path = f"/s/{session['maya'].id}"
        left_out, reader = await maya.open(path), await jonas.open(path)
        for page in (left_out, reader):
            await page.get_by_role("textbox", name="Prompt, written together").wait_for()
        prompt = await session["jonas"].prompt("Weigh it", "claude")
        async with session["claude"].think(prompt, visible_to=["jonas"]) as thoughts:
            await thoughts.write("Only for Jonas")
            await expect(reader.get_by_text("Only for Jonas")).to_be_visible()
        async with session["claude"].respond(prompt) as out:
            await out.write("Weighed.")
        for _ in range(2):
            await expect(left_out.get_by_text("Weighed.")).to_be_visible()
            assert "Only for Jonas" not in await left_out.content()
            await expect(left_out.get_by_text("Thought")).to_have_count(0)
            await left_out.reload()
