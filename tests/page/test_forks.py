"""Forks: the tree, two side by side, and a merge whose conflicts are resolved in the page."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from accord.client import Session
from accord.core.room.forking.merges import MergePropose
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.forks_scene import OPEN, PLAN_OF_MAIN, PLAN_OF_THE_FORK, two_ways
from tests.helpers.page.hostile import CORPUS
from tests.helpers.page.team import Team
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

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
async def ways(team: Team) -> dict[str, Session]:
    return await two_ways(team)


async def show(maya: Visitor, page: Page, session: Session, query: str = "") -> None:
    await page.goto(f"{maya.url}/s/{session.id}/forks{query}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Forks")


async def test_session_without_forks_says_what_they_are_for_and_begins_one(
    maya: Visitor, page: Page, team: Team
) -> None:
    room = await team.session("No fork yet", "jonas", "maya", "claude", **OPEN)
    await room["jonas"].prompt("Bucket or window?", "claude")
    await show(maya, page, room["maya"])
    await expect(page.get_by_text("No fork yet.")).to_be_visible()
    await page.keyboard.press("f")
    await page.get_by_label("Name").fill("bucket")
    await page.get_by_role("checkbox", name="claude").check()
    await page.get_by_role("button", name="Fork main here").click()

    await expect(page.get_by_label("Right side")).to_have_value("bucket")
    (fork,) = (await (await team.client("maya")).session(room["maya"].id)).forks
    assert (fork.name, set(fork.members)) == ("bucket", {"claude", "maya"})


async def test_two_forks_stand_side_by_side(
    maya: Visitor, page: Page, ways: dict[str, Session]
) -> None:
    await show(maya, page, ways["maya"])
    table = page.get_by_role("table")
    await expect(table).to_contain_text("no account was reached")
    await expect(table).to_contain_text("But it refills")
    await expect(table.get_by_role("row", name="Change")).to_contain_text("+6 −1 in 1 file")
    await expect(table).to_contain_text("reached 2")
    await expect(page.get_by_text("Both leave main at turn 2")).to_be_visible()
    await expect(page.get_by_label("Left side")).to_have_value("token-bucket")
    await page.keyboard.press("s")
    await expect(page.get_by_label("Left side")).to_have_value("sliding-window")
    await page.keyboard.press("v")
    bucket, window = (
        page.get_by_role("listitem").filter(has_text=name)
        for name in ("token-bucket", "sliding-window")
    )
    await expect(bucket).to_contain_text("with claude and Maya Okafor")
    await expect(window).to_contain_text("1 changed on both sides")


@proves("OPEN-38")
async def test_fork_shows_what_came_before_it_whatever_the_clocks_of_senders_say(
    maya: Visitor, page: Page, team: Team
) -> None:
    room = await team.session("Clocks", "maya", "jonas", "claude")
    id = room["maya"].id
    await page.goto(f"{maya.url}/settings")
    before, after = "Before, by a clock that is ahead", "After, by a clock that is behind"
    assert await page.evaluate(PROMPT_AT, [id, before, "2040-01-01T00:00:00Z"]) == 200
    await room["maya"].fork("clocks", ["jonas", "claude"], reason="Does order hold?")
    assert await page.evaluate(PROMPT_AT, [id, after, "2001-01-01T00:00:00Z"]) == 200
    await page.goto(f"{maya.url}/s/{id}/f/clocks")
    await expect(page.get_by_text(before)).to_be_visible()
    await expect(page.get_by_text(after)).to_have_count(0)
    await page.goto(f"{maya.url}/s/{id}")
    await expect(page.get_by_text(after)).to_be_visible()


PROMPT_AT = """async ([session, content, ts]) => {
  const payload = { content, target_agent: "claude", contributors: ["maya"], context_keys: [] };
  const type = "prompt.submit", sender = "maya", id = crypto.randomUUID();
  const response = await fetch(`/sessions/${session}/messages`, {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ v: 1, id, ts, session, sender, type, payload }),
  });
  return response.status;
}"""


@proves("OPEN-48")
async def test_fork_is_merged_with_a_conflict_by_keyboard_alone(
    maya: Visitor, page: Page, ways: dict[str, Session], team: Team
) -> None:
    session = ways["maya"].id
    await show(maya, page, ways["maya"], "?a=token-bucket&b=sliding-window")
    merge = page.get_by_role("button", name="Merge", exact=True)
    await expect(merge).to_be_disabled()
    await page.get_by_label("what came of it?").focus()
    await page.keyboard.type("No account was reached; 0.2 ms more is fine.")
    await page.keyboard.press("Tab")
    await page.keyboard.type("It refills while an attacker walks on.")
    await expect(merge).to_be_disabled()
    await expect(page.get_by_text("1 to resolve.")).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Keep main’s")).to_be_focused()
    await page.get_by_role("button", name="Show the difference").press("Enter")
    await expect(page.get_by_role("region", name="Changes of plan.md")).to_contain_text("sorted")
    third = page.get_by_role("button", name="Write a third")
    await third.press("Enter")
    text = page.get_by_label("A third plan.md")
    await expect(text).to_have_value(PLAN_OF_THE_FORK)
    await text.fill(f"{PLAN_OF_MAIN}As a sorted set\n")
    await page.keyboard.press("Control+Enter")

    await expect(page.get_by_text("sliding-window was merged into main.")).to_be_visible()
    client = await team.client("maya")
    assert (await client.context(session, "plan.md")).content == f"{PLAN_OF_MAIN}As a sorted set\n"
    said = [each.body async for each in client.history(session)]
    (proposed,) = (body for body in said if isinstance(body, MergePropose))
    assert proposed.metadata == {
        "not_chosen": {"token-bucket": "It refills while an attacker walks on."}
    }


async def test_conflict_that_the_server_finds_later_is_named_in_the_bar(
    maya: Visitor, page: Page, team: Team
) -> None:
    room = await team.session("Late", "jonas", "maya", "claude", **OPEN)
    jonas = room["jonas"]
    await jonas.add_context("plan.md", "one")
    await jonas.fork("later", ["maya", "claude"])
    await show(maya, page, room["maya"], "?a=main&b=later")
    await page.get_by_label("what came of it?").fill("Nothing much")
    await expect(page.get_by_role("button", name="Merge", exact=True)).to_be_enabled()
    await jonas.within("later").update_context("plan.md", "two")
    await jonas.update_context("plan.md", "three")
    await expect(page.get_by_text("changed on both sides")).to_be_visible()
    await page.get_by_role("button", name="Take later’s").click()
    await page.get_by_role("button", name="Merge", exact=True).click()

    await expect(page.get_by_text("later was merged into main.")).to_be_visible()
    assert (await (await team.client("maya")).context(room["maya"].id, "plan.md")).content == "two"


async def test_merge_of_an_agent_waits_for_its_gate(maya: Visitor, page: Page, team: Team) -> None:
    room = await team.session("Gated", "jonas", "maya", "claude", **OPEN)
    await room["jonas"].prompt("Try it.", "claude")
    await room["jonas"].fork("gated", ["maya", "claude"])
    await room["claude"].propose_merge("gated", "It works")
    await show(maya, page, room["maya"], "?a=main&b=gated")
    await expect(page.get_by_text("claude proposed to merge gated into main")).to_be_visible()
    await page.get_by_role("link", name="It waits for approval.").click()
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert "/g/" in page.url


async def test_outsider_and_observer_cannot_merge(
    browser: Browser, page_server: ServerProcess, ways: dict[str, Session], team: Team
) -> None:
    await (await team.client("priya")).join(ways["maya"].id, listen=False)
    async with signed_in(browser, page_server, "priya", "approver") as priya:
        page = await priya.open(f"/s/{ways['maya'].id}/forks?a=main&b=token-bucket")
        await expect(page.get_by_text("You can compare. Merging needs the role")).to_be_visible()
        await expect(page.get_by_role("button", name="Merge", exact=True)).to_have_count(0)
        await expect(page.get_by_role("button", name="New fork")).to_have_count(0)


async def test_hostile_words_are_inert(maya: Visitor, page: Page, team: Team) -> None:
    room = await team.session("<b>bold</b> \u202eeman", "jonas", "maya", "claude", **OPEN)
    jonas, claude = room["jonas"], room["claude"]
    key = "k<img src=x onerror=alert(1)>\u202e"
    await jonas.add_context(key, "one")
    await jonas.prompt("\n".join(CORPUS)[:20_000], "claude")
    forks = [
        await jonas.fork(text[:200].strip() or "x", ["maya", "claude"], reason=text[:2000])
        for text in CORPUS[:12]
    ]
    for fork in forks[-2:]:
        prompt = await jonas.within(fork).prompt("\n".join(CORPUS), "claude")
        async with claude.within(fork).respond(prompt) as answer:
            await answer.write("\n\n".join(CORPUS))
        edit = {"path": CORPUS[10], "old_string": CORPUS[0], "new_string": "\n".join(CORPUS)}
        proposal = await claude.within(fork).propose("edit", edit, category="file_write")
        granted = await claude.decision(proposal)
        await claude.within(fork).execute(granted)
        await claude.within(fork).result(granted, success=True, duration_ms=1)
    await jonas.within(forks[-1]).update_context(key, "\n".join(CORPUS))
    await jonas.update_context(key, "three")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    for width in (1440, 360):
        await page.set_viewport_size({"width": width, "height": 800})
        await show(maya, page, room["maya"])
        await expect(page.get_by_text("changed on both sides")).to_be_visible()
        await page.get_by_role("button", name="Show the difference").click()
        await expect(page.get_by_role("region", name="Changes of k")).to_be_visible()
        await is_inert(page)
        await page.get_by_role("button", name="Tree").click()
        await expect(page.get_by_role("listitem").first).to_be_visible()
        await is_inert(page)
    assert dialogs == []


async def is_inert(page: Page) -> None:
    made = "main :is(script, img, iframe, object, style, math, [onclick], [onerror])"
    assert await page.locator(made).count() == 0
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    shown = await page.locator("main").inner_text()
    assert not set("\u202e\u200b\u2066\x1b\x07") & set(shown)


@pytest.mark.parametrize("width", [1440, 360])
async def test_forks_are_accessible(
    maya: Visitor, page: Page, ways: dict[str, Session], width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 800})
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        await show(maya, page, ways["maya"])
        await expect(page.get_by_role("cell").first).to_be_visible()
        assert await serious_findings(page) == []
        await page.get_by_role("button", name="Tree").click()
        await expect(page.get_by_role("listitem").first).to_be_visible()
        assert await serious_findings(page) == []
        assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
