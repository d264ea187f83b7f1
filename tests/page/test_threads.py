"""Threads: inbox, reading and acknowledging, findings, delivery states, status and waking."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from accord.client import Client
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.hostile import CORPUS
from tests.helpers.page.team import Team
from tests.helpers.page.threads_scene import event
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAYA = ("maya", "admin", "driver", "approver")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def maya(browser: Browser, page_server: ServerProcess) -> AsyncIterator[Visitor]:
    async with signed_in(browser, page_server, *MAYA, name="Maya Okafor") as someone:
        yield someone


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def codex(team: Team) -> Client:
    return await team.client("codex")


@pytest_asyncio.fixture(loop_scope="module")
async def page(maya: Visitor) -> AsyncIterator[Page]:
    """A tab of Maya's; a browser has few connections to one server for all of its tabs."""
    tab = await maya.context.new_page()
    yield tab
    await tab.close()


async def show(page: Page, server: ServerProcess, thread: str) -> None:
    await page.goto(f"{server.url}/threads/{thread}")
    await expect(page.get_by_label("Message", exact=True)).to_be_visible()


async def test_empty_inbox_offers_to_start_a_thread(page: Page, page_server: ServerProcess) -> None:
    await page.goto(f"{page_server.url}/threads")
    await page.get_by_role("button", name="Start one").click()
    await page.get_by_label("What it is about").fill("Who owns the staging database?")
    await page.get_by_label("With").fill("jonas, codex")
    await page.get_by_role("button", name="Start", exact=True).click()

    await expect(page.get_by_role("heading", name="Who owns the staging database?")).to_be_visible()
    await page.get_by_label("Message", exact=True).fill("Platform, until Friday?")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("queued for")).to_contain_text("codex")


async def test_opening_marks_nothing_read_and_e_does(
    page: Page, page_server: ServerProcess, codex: Client
) -> None:
    thread = await codex.threads.create("Python 3.13", ["maya"])
    await codex.threads.post(thread.thread_id, "tomllib or tomli?", metadata={"to": ["maya"]})
    await page.goto(f"{page_server.url}/threads")
    row = page.get_by_role("link", name="Python 3.13")
    await expect(row).to_contain_text("codex waits for your answer")
    await page.keyboard.press("j")
    await expect(row).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("tomllib or tomli?")).to_be_visible()
    assert (await delivery(codex, thread.thread_id, 1)) == {"maya": "seen"}

    await page.keyboard.press("e")
    await expect(page.get_by_role("button", name="Done")).to_have_count(0)
    assert (await delivery(codex, thread.thread_id, 1)) == {"maya": "acked"}


async def test_answering_acknowledges_and_new_messages_appear(
    page: Page, page_server: ServerProcess, codex: Client
) -> None:
    thread = await codex.threads.create("Cache keys", ["maya"])
    await codex.threads.post(thread.thread_id, "By content hash?")
    await show(page, page_server, thread.thread_id)
    await page.keyboard.press("i")
    await page.keyboard.type("Yes, please.")
    await page.get_by_role("button", name="Post").click()
    await expect(page.get_by_text("Yes, please.")).to_be_visible()
    assert (await delivery(codex, thread.thread_id, 1)) == {"maya": "acked"}

    await codex.threads.post(thread.thread_id, "Done in a minute.")
    await expect(page.get_by_text("Done in a minute.")).to_be_visible()


async def test_finding_is_closed_by_those_who_may(
    page: Page, page_server: ServerProcess, codex: Client, team: Team
) -> None:
    thread = await codex.threads.create("Review: login limits", ["maya", "claude"])
    finding = await codex.threads.post(
        thread.thread_id,
        "Retry-After gives away where the window starts.",
        **event("finding_reported", severity="high", path="src/auth/limits.py:48", task_id="T44"),
    )
    await show(page, page_server, thread.thread_id)
    card = page.locator(f"[data-finding='{finding.message_id}']")
    await expect(card).to_contain_text("codex or a reviewer may close it")
    claude = await team.client("claude")
    await claude.threads.post(
        thread.thread_id,
        "Rounded up to whole minutes.",
        **event("fix_pushed", commit="5e1b2c7"),
        reply_to=finding.message_id,
    )
    await expect(card).to_contain_text("not claude, who fixed it")
    await card.get_by_role("button", name="Verified").click()

    await expect(card).to_contain_text("verified")
    summary = await codex.threads.summary(thread.thread_id)
    assert summary.open_items == ()


async def test_status_changes_with_its_reason(
    page: Page, page_server: ServerProcess, codex: Client
) -> None:
    thread = await codex.threads.create("Nightly report", ["maya"])
    await show(page, page_server, thread.thread_id)
    await page.get_by_role("button", name="Resolve…").click()
    await page.get_by_label("Why (optional)").fill("merged")
    await page.get_by_role("button", name="Change", exact=True).click()

    await expect(page.get_by_text("from active to resolved: merged")).to_be_visible()
    assert (await codex.threads.get(thread.thread_id)).status == "resolved"


async def test_wake_says_what_it_came_to(
    page: Page, page_server: ServerProcess, codex: Client
) -> None:
    thread = await codex.threads.create("Wake", ["maya", "codex"])
    await codex.threads.post(thread.thread_id, "Ready.")
    await show(page, page_server, thread.thread_id)
    await page.get_by_label("Message", exact=True).fill("Please look.")
    await page.get_by_role("checkbox", name="codex").check()
    await page.keyboard.press("Control+Enter")
    await page.get_by_role("complementary").get_by_role("button", name="Wake now…").click()
    await page.get_by_label("Why").fill("the tests are red")
    await page.get_by_role("button", name="Wake", exact=True).click()

    # Nothing here can wake it, and the server's sentence says what to do.
    await expect(page.get_by_role("alert")).to_contain_text("start it with accord supervise")


async def test_refusal_stands_where_it_was_caused(page: Page, page_server: ServerProcess) -> None:
    await page.goto(f"{page_server.url}/threads/th_00000000000000000000000000")
    await expect(page.get_by_role("alert")).to_contain_text("thread")


async def test_hostile_words_are_inert(
    page: Page, page_server: ServerProcess, codex: Client
) -> None:
    thread = await codex.threads.create("<img src=x onerror=alert(1)>", ["maya"])
    for attack in CORPUS:
        about = {"severity": attack[:60], "path": attack[:90], "task_id": attack[:90]}
        await codex.threads.post(
            thread.thread_id, f".{attack}", **event("finding_reported", **about)
        )
    await codex.threads.post(thread.thread_id, "\n\n".join(CORPUS))
    await show(page, page_server, thread.thread_id)
    await expect(page.locator("[data-finding]")).to_have_count(len(CORPUS))
    made = "document.querySelectorAll('main img, main script, main iframe, main object').length"
    assert await page.evaluate(made) == 0
    await no_sideways_scrolling(page)


@pytest.mark.parametrize("width", [1440, 360])
async def test_threads_are_accessible(
    page: Page, page_server: ServerProcess, codex: Client, width: int
) -> None:
    thread = await codex.threads.create(f"Review at {width}", ["maya", "codex"])
    await codex.threads.post(
        thread.thread_id, "It grows.", **event("finding_reported", severity="low")
    )
    await show(page, page_server, thread.thread_id)
    await page.set_viewport_size({"width": width, "height": 800})
    for theme in ("light", "dark"):
        await page.emulate_media(color_scheme=theme)
        for path in (f"/threads/{thread.thread_id}", "/threads"):
            await page.goto(page_server.url + path)
            title = page.get_by_text(f"Review at {width}").filter(visible=True)
            await expect(title.first).to_be_visible()
            assert await serious_findings(page) == []
            await no_sideways_scrolling(page)


async def no_sideways_scrolling(page: Page) -> None:
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def delivery(client: Client, thread: str, seq: int) -> dict[str, str]:
    """How far a message of this client's reached its readers."""
    page = await client.threads.read(thread, since=seq - 1)
    reached = page.messages[0].delivery
    assert isinstance(reached, dict)
    return {who: str(state) for who, state in reached.items()}
