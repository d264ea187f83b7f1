"""The session screen: what agents say, gates, a draft of several people, stopping, and replay."""

import re
from asyncio import gather

import pytest
from playwright.async_api import Browser, Page, expect

from accord.api.policies import StandingGrantRequest
from accord.client import Client
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Theme, sign_in_code, signed_in
from tests.helpers.page.team import Team, propose_migration
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
ADMIN = ("admin", "driver", "approver")


async def answer_text(page: Page) -> str:
    return await page.locator(".markdown").last.inner_text()


async def test_an_answer_appears_while_it_is_written(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Streaming", "maya", "claude")
    prompt = await room["maya"].prompt("How many?", "claude")
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        await expect(page.get_by_text("How many?")).to_be_visible()
        async with room["claude"].respond(prompt) as out:
            await out.write("**Five**, then ")
            await expect(page.locator(".markdown strong")).to_have_text("Five")
            await expect(page.get_by_role("button", name="Stop claude")).to_be_visible()
            await out.write("back off.")
            await expect(page.get_by_text("Five, then back off.")).to_be_visible()
        await expect(page.get_by_role("button", name="Stop claude")).to_have_count(0)
        assert await serious_findings(page) == []


async def test_a_gate_is_approved_by_keys_on_the_chosen_card_alone(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Gate", "maya", "claude")
    proposal = await propose_migration(room["claude"])
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        card = page.get_by_role("article", name="Migrate the staging database?")
        await expect(card).to_contain_text("Your yes is enough.")
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")
        await expect(card).to_be_visible()

        await card.focus()
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")

        granted = await room["claude"].decision(proposal)
        await expect(page.get_by_text("approved by maya")).to_be_visible()
        await expect(page.get_by_role("button", name="Take back")).to_be_visible()
        await room["claude"].execute(granted)
        await room["claude"].output(granted, "\x1b[32mdone\x1b[0m\x1b[2J\n")
        await room["claude"].result(granted, success=True, duration_ms=4100)
        await expect(page.locator(".green", has_text="done")).to_be_visible()
        await expect(page.get_by_text("4.1 s, approved by maya")).to_be_visible()


async def test_two_people_write_one_draft_and_it_is_sent_once(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Draft", "maya", "jonas", "claude")
    path = f"/s/{room['maya'].id}"
    async with (
        signed_in(browser, page_server, "maya", *ADMIN) as maya,
        signed_in(browser, page_server, "jonas", "driver", "approver") as jonas,
    ):
        hers, his = await maya.open(path), await jonas.open(path)
        mine = hers.get_by_label("Prompt, written together")
        theirs = his.get_by_label("Prompt, written together")
        await mine.fill("Allow 5 tries a minute")
        await expect(theirs).to_have_value("Allow 5 tries a minute")
        await theirs.press("End")
        await theirs.press_sequentially(", then back off", delay=20)
        await mine.press("Home")
        await mine.press_sequentially("Please: ", delay=20)
        whole = "Please: Allow 5 tries a minute, then back off"
        await expect(mine).to_have_value(whole)
        await expect(theirs).to_have_value(whole)
        await expect(hers.locator(".caret")).to_have_text("Jonas Lind")

        await mine.press("Control+Enter")
        await expect(theirs).to_have_value("")
        for page in (hers, his):
            await expect(page.get_by_text(whole)).to_have_count(1)
        await expect(hers.locator(".name").last).to_contain_text("with Jonas Lind")


async def test_two_people_type_in_one_draft_at_the_same_time_and_both_read_every_letter(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Draft at once", "maya", "jonas", "claude")
    path = f"/s/{room['maya'].id}"
    async with (
        signed_in(browser, page_server, "maya", *ADMIN) as maya,
        signed_in(browser, page_server, "jonas", "driver", "approver") as jonas,
    ):
        hers, his = await maya.open(path), await jonas.open(path)
        mine, theirs = (page.get_by_label("Prompt, written together") for page in (hers, his))
        for each in (hers, his):
            await expect(each.get_by_role("button", name="Send")).to_be_visible()
        await mine.fill(" | ")
        await expect(theirs).to_have_value(" | ")
        await mine.press("Home")
        await theirs.press("End")
        before, after = "Allow five tries a minute", "then back off, and say for how long"
        await gather(
            mine.press_sequentially(before, delay=7), theirs.press_sequentially(after, delay=5)
        )
        for field in (mine, theirs):
            await expect(field).to_have_value(f"{before} | {after}")

        # In one place there is no right order, but one for both, and nothing is lost.
        for field in (mine, theirs):
            await field.press("Home")
        await gather(
            mine.press_sequentially("A" * 30, delay=6), theirs.press_sequentially("B" * 30, delay=6)
        )
        whole = re.compile(r"^(?=(?:B*A){31}[^A]*$)(?=(?:A*B){30}[^B]*$)[AB]{61}llow five")
        await expect(mine).to_have_value(whole)
        await expect(theirs).to_have_value(await mine.input_value())


async def test_draft_of_one_writer_outlives_reload_home_and_sign_in_and_is_not_said_twice(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Kept draft", "maya", "jonas", "claude")
    path = f"/s/{room['maya'].id}"
    await room["maya"].prompt("What shall we limit?", "claude")
    await room["maya"].fork("other", ["jonas"], reason="Another way")
    async with (
        signed_in(browser, page_server, "maya", *ADMIN) as maya,
        signed_in(browser, page_server, "jonas", "driver", "approver") as jonas,
    ):
        hers, his = await maya.open(path), await jonas.open(path)
        mine, theirs = (page.get_by_label("Prompt, written together") for page in (hers, his))
        for each in (hers, his):
            await expect(each.get_by_role("button", name="Send")).to_be_visible()
        await mine.fill("Allow 5 tries")
        await expect(theirs).to_have_value("Allow 5 tries")
        await hers.reload()
        await expect(mine).to_have_value("Allow 5 tries")
        await mine.press("End")
        await mine.press_sequentially(" a minute")
        await expect(theirs).to_have_value("Allow 5 tries a minute")

        await his.close()
        await hers.get_by_role("navigation", name="Main").get_by_text("Home").click()
        await hers.goto(f"{page_server.url}{path}/f/other")
        await expect(mine).to_have_value("")
        await mine.fill("Only in the fork")
        await hers.goto(f"{page_server.url}/settings")
        await hers.get_by_role("button", name="Sign out here", exact=True).click()
        await hers.get_by_role("heading", name="Come in").wait_for()
        await hers.goto(f"{page_server.url}/#code={sign_in_code(page_server, 'maya', *ADMIN)}")
        await hers.get_by_role("heading", level=1, name="Home").wait_for()
        await hers.goto(f"{page_server.url}{path}/f/other")
        await expect(mine).to_have_value("Only in the fork")
        await hers.goto(page_server.url + path)
        await expect(mine).to_have_value("Allow 5 tries a minute")

        await mine.press("Control+Enter")
        await expect(hers.get_by_text("Allow 5 tries a minute")).to_have_count(1)
        await hers.reload()
        await expect(hers.get_by_text("Allow 5 tries a minute")).to_be_visible()
        await expect(mine).to_have_value("")


async def test_stop_acts_at_once_and_a_prompt_lets_the_agent_go_on(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Stop", "maya", "claude")
    prompt = await room["maya"].prompt("Run everything", "claude")
    out = room["claude"].respond(prompt)
    await out.__aenter__()
    await out.write("I begin")
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        await page.get_by_role("button", name="Stop claude").click()
        await expect(page.get_by_text("claude is stopped. A prompt lets it go on.")).to_be_visible()
        await expect(page.get_by_text("stopped claude")).to_be_visible()
        await page.get_by_label("Prompt, written together").fill("Only the login tests")
        await page.keyboard.press("Control+Enter")
        await expect(page.get_by_text("claude is stopped.")).to_have_count(0)


async def test_secret_is_shared_by_a_pointer_for_whom_it_is_and_revoked(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Secret", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        await page.get_by_role("button", name="Put something on the shelf").click()
        await page.get_by_role("button", name="Share a secret…").click()
        dialog = page.get_by_role("dialog", name="Share a secret")
        await dialog.get_by_label("Name").fill("staging database")
        await dialog.get_by_label("Pointer").fill("hunter2")  # a value, not where it is
        share = dialog.get_by_role("button", name="Share the pointer")
        await expect(share).to_be_disabled()
        await dialog.get_by_label("Pointer").fill("vault:db/staging")
        assert await serious_findings(page) == []
        await share.click()
        panel = page.get_by_role("complementary", name="Room")
        await expect(panel).to_contain_text("staging database")
        history = await page.request.get(f"{page_server.url}/sessions/{room['maya'].id}/messages")
        assert "secret.share" in await history.text()
        assert "vault:db/staging" not in await history.text()
        await page.get_by_role("button", name="Revoke the secret staging database").click()
        await expect(panel).not_to_contain_text("staging database")


async def test_an_observer_reads_and_cannot_write(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Watched", "maya", "claude")
    await propose_migration(room["claude"])
    await room["maya"].add_context("plan", "Secret plan")
    async with signed_in(browser, page_server, "olga", "observer") as olga:
        token = page_server.issue_token("olga", "human", ("observer",))
        async with Client(page_server.url, token=token) as client:
            await client.join(room["maya"].id, listen=False)
        page = await olga.open(f"/s/{room['maya'].id}")
        await expect(page.get_by_text("Observers read.")).to_be_visible()
        await expect(page.get_by_text("Migrate the staging database?")).to_be_visible()
        for name in (re.compile("^Approve"), re.compile("^Reject"), "Send"):
            await expect(page.get_by_role("button", name=name)).to_have_count(0)


async def test_replay_shows_an_earlier_moment(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Replayed", "maya", "claude")
    first = await room["maya"].prompt("First question", "claude")
    async with room["claude"].respond(first) as out:
        await out.write("First answer")
    await room["maya"].prompt("Second question", "claude")
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        await expect(page.get_by_text("Second question")).to_be_visible()
        await page.get_by_role("link", name="Replay", exact=True).click()
        slider = page.get_by_role("slider", name="Moment of the session")
        await expect(slider).to_be_visible()
        end = await slider.get_attribute("max")
        marks = page.get_by_role("button", name="Prompt at seq", include_hidden=True)
        await expect(marks).to_have_count(2)
        await slider.press("Home")
        for _ in range(3):
            await slider.press("ArrowRight")
        await expect(page.get_by_text("Second question")).to_have_count(0)
        await expect(page.get_by_label("Prompt, written together")).to_have_count(0)
        await expect(page.get_by_role("button", name="Back to now")).to_be_visible()
        await page.goto(f"{page.url.split('?')[0]}?at=2")  # goes on from there, too
        await expect(slider).to_have_attribute("max", end or "")
        await page.keyboard.press("Escape")
        await expect(page.get_by_text("Second question")).to_be_visible()


FIRST_ROWS = """() => {
  const rows = [...document.querySelectorAll("[role=article]")];
  const box = document.querySelector("[role=feed]").getBoundingClientRect();
  const shown = rows.find((each) => each.getBoundingClientRect().top >= box.top + 40);
  return { text: shown.innerText.slice(0, 60), top: shown.getBoundingClientRect().top };
}"""
TOP_OF = """(text) => {
  const rows = [...document.querySelectorAll("[role=article]")];
  return rows.find((each) => each.innerText.startsWith(text)).getBoundingClientRect().top;
}"""


async def test_reading_older_rows_is_not_disturbed(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Long", "maya", "claude")
    for number in range(50):
        prompt = await room["maya"].prompt(f"Question {number}.", "claude")
        async with room["claude"].respond(prompt) as out:
            await out.write(f"Answer {number}.\n\n" * (1 + number % 4))
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        feed = page.get_by_role("feed")
        await expect(page.get_by_text("Question 49.")).to_be_in_viewport()
        await feed.hover()
        await page.mouse.wheel(0, -120)
        await expect(page.locator(".jump")).to_be_visible()

        await room["maya"].prompt("Question 50.", "claude")
        await expect(page.locator(".jump")).to_contain_text("1 new row")
        await expect(page.get_by_text("Question 50.")).not_to_be_in_viewport()

        async with page.expect_response(re.compile(r"/turns\?before=[1-9]")):
            await feed.evaluate("(box) => { box.scrollTop = 450; }")
            await page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
            before = await page.evaluate(FIRST_ROWS)
        await expect(page.locator("[role=article]").first).not_to_have_text(before["text"])
        await page.wait_for_function(
            "(height) => document.querySelector('[role=feed]').scrollTop > height", arg=600
        )
        assert abs(await page.evaluate(TOP_OF, before["text"]) - before["top"]) <= 1

        await page.locator(".jump").click()
        await expect(page.get_by_text("Question 50.")).to_be_in_viewport()


@pytest.mark.parametrize(("theme", "phone"), [("light", False), ("dark", False), ("light", True)])
async def test_a_full_session_is_accessible(
    browser: Browser, page_server: ServerProcess, team: Team, theme: Theme, *, phone: bool
) -> None:
    room = await team.session("Everything", "maya", "jonas", "claude")
    maya, claude = room["maya"], room["claude"]
    await maya.add_context("adr/014-rate-limits.md", "Five tries")
    prompt = await maya.prompt("Limit the login", "claude", context_keys=["adr/014-rate-limits.md"])
    async with claude.think(prompt) as thinking:
        await thinking.write("Two counters.")
    edit = {"path": "limits.py", "old_string": "LIMIT = 10\n", "new_string": "LIMIT = 5\n"}
    written = await claude.propose("edit", edit, category="file_write", prompt=prompt)
    await maya.approve(written)
    granted = await claude.decision(written)
    await claude.execute(granted)
    await claude.output(granted, "\x1b[32mok\x1b[0m \x1b[33mwarned\x1b[0m\n")
    await claude.output(granted, "careful\n", stream="stderr")
    await claude.result(granted, success=False, duration_ms=31_000)
    async with claude.respond(prompt) as out:
        await out.write("# Done\n\n- `a`\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    await claude.propose("edit", edit, category="file_write", prompt=prompt, description="Smaller")
    await propose_migration(claude)
    async with signed_in(browser, page_server, "maya", *ADMIN, theme=theme, phone=phone) as person:
        page = await person.open(f"/s/{maya.id}")
        await expect(page.get_by_text("Migrate the staging database?").first).to_be_visible()
        assert await serious_findings(page) == []
        await page.get_by_role("feed").focus()
        await page.keyboard.press("Home")
        await page.get_by_role("feed").evaluate("(box) => { box.scrollTop = 0; }")
        await expect(page.get_by_text("Limit the login")).to_be_visible()
        assert await serious_findings(page) == []


async def test_a_standing_grant_shows_and_can_be_ended(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Standing", "maya", "jonas", "claude")
    request = StandingGrantRequest(agent="claude", count=5, seconds=1800, run=("uv run pytest *",))
    await (await team.client("jonas")).give_standing_grant(room["jonas"].id, request)
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.open(f"/s/{room['maya'].id}")
        grants = page.get_by_role("listitem").filter(has_text="uv run pytest")
        await expect(grants).to_contain_text("0 of 5 used")
        await grants.get_by_role("button", name="End").click()
        await expect(grants).to_have_count(0)
