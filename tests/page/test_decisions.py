"""Several decisions at once, several ways to do one thing, and being told of what waits."""

from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from accord.client import Session
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.team import Team, propose_deletion, propose_reported
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
PART = f"tests/test_{'of_the_parts_' * 8}"  # so that 40 are higher than what a card shows at once
LONG = "\n".join(f"make step-{number}" for number in range(60))


async def propose_ways(agent: Session, *ways: tuple[str, str]) -> list[str]:
    """Several commands with their risks, of which one is to be chosen."""
    made: list[str] = []
    for command, risk in ways:
        way = await agent.propose(
            "shell",
            {"command": command},
            category="shell_execute",
            risk=risk,
            metadata={"option_of": made[0]} if made else {},
        )
        made.append(way)
    return made


async def scroll_to_end(box: Locator) -> None:
    await box.scroll_into_view_if_needed()
    await box.evaluate("box => box.scrollTo(0, box.scrollHeight)")


async def test_calls_alike_are_approved_together_each_by_a_vote_of_its_own(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Alike", "jonas", "maya", "claude")
    commands = [f"uv run pytest tests/test_{name}.py" for name in ("auth", "limits", "mail")]
    proposals = [await propose_reported(session["claude"], each) for each in commands]
    risky = await propose_deletion(session["claude"])  # only its agent says what it is
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("button", name="Approve 3 alike…").click()
        dialog = page.get_by_role("dialog", name="Approve alike")
        for command in commands:
            await expect(dialog).to_contain_text(command)
        await expect(dialog).not_to_contain_text("rm -r")
        assert await serious_findings(page) == []
        await dialog.get_by_role("checkbox").last.uncheck()
        await dialog.get_by_label("Add a word for the record").fill("Tests only.")
        await dialog.locator("form[data-steady]").wait_for(state="attached")
        await dialog.get_by_role("button", name="Approve 2 shown").click()

        for proposal in proposals[:2]:
            granted = await session["claude"].decision(proposal)
            assert granted.approved_by == ("maya",)
    gates = (await (await team.client("jonas")).session(session["jonas"].id)).gates
    assert {gate.request.action_ref for gate in gates} == {proposals[2], risky}
    await session["jonas"].end("The test is over")


async def test_calls_off_screen_cannot_be_approved_together(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Long alike", "jonas", "maya", "claude")
    long = " && ".join(f"uv run pytest {PART}_{number}.py -q" for number in range(40))
    for number in range(3):
        await propose_reported(session["claude"], f"{long} && echo {number}")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("button", name="Approve 3 alike…").click()
        dialog = page.get_by_role("dialog", name="Approve alike")
        approve = dialog.get_by_role("button", name="Approve 3 shown")
        await expect(dialog).to_contain_text("not on screen yet")
        await expect(approve).to_be_disabled()
        # Nothing scrolls inside a call: its end would be on screen and its lines would not.
        for box in await dialog.get_by_label("What would run").all():
            assert await box.evaluate("box => box.scrollHeight <= box.clientHeight")
        for item in await dialog.get_by_role("listitem").all():
            await item.locator("[data-end]").scroll_into_view_if_needed()
        await expect(approve).to_be_enabled()
    await session["jonas"].end("The test is over")


async def test_of_several_ways_the_chosen_one_is_approved_and_the_others_are_turned_down(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Ways", "jonas", "maya", "claude")
    claude = session["claude"]
    first = await claude.propose(
        "shell",
        {"command": "uv run alembic upgrade head"},
        category="database",
        description="All at once",
    )
    second = await claude.propose(
        "shell",
        {"command": "uv run alembic upgrade +1"},
        category="database",
        description="One step, then look",
        metadata={"option_of": first},
    )
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        card = page.get_by_role("article")
        await expect(card.get_by_text("Recommended by claude")).to_be_visible()
        await expect(card.get_by_role("radio")).to_have_count(2)
        await page.keyboard.press("j")
        await page.keyboard.press("2")
        await expect(card.get_by_role("radio").nth(1)).to_be_checked()
        await page.keyboard.press("a")
        await page.keyboard.press("Control+Enter")

        assert (await claude.decision(second)).approved_by == ("maya",)
        with pytest.raises(Exception, match="chose"):
            await claude.decision(first)
    await session["jonas"].end("The test is over")


async def test_another_gate_in_place_of_an_armed_one_is_not_armed(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Armed", "jonas", "maya", "claude")
    for command in ("make first", "make second"):
        await session["claude"].propose("shell", {"command": command}, category="shell_execute")
    first, second = (await (await team.client("jonas")).session(session["jonas"].id)).gates
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open(f"/g/{first.id}")
        armed = page.get_by_role("button", name="Yes, run exactly this")
        await page.get_by_role("article").focus()
        await page.keyboard.press("a")
        await expect(armed).to_be_visible()
        await page.keyboard.press("j")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("make second")
        await expect(armed).to_have_count(0)
        await page.keyboard.press("Control+Enter")
        await page.keyboard.press("x")
        await page.keyboard.type("Nobody read it")
        await page.keyboard.press("Control+Enter")
        with pytest.raises(Exception, match="Nobody read it"):
            await session["claude"].decision(second.request.action_ref)
    gates = (await (await team.client("jonas")).session(session["jonas"].id)).gates
    assert [gate.id for gate in gates] == [first.id]
    await session["jonas"].end("The test is over")


async def test_another_way_in_place_of_an_armed_one_is_not_armed(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Armed way", "jonas", "maya", "claude")
    _, second = await propose_ways(session["claude"], ("make one", "low"), ("make two", "low"))
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        await page.get_by_role("radio").first.wait_for()
        armed = page.get_by_role("button", name="Yes, run exactly this")
        await page.keyboard.press("j")
        await page.keyboard.press("a")
        await expect(armed).to_be_visible()
        await page.keyboard.press("2")
        await expect(page.get_by_role("radio").nth(1)).to_be_checked()
        await expect(armed).to_have_count(0)
        await page.keyboard.press("Control+Enter")
        await page.keyboard.press("x")
        await page.keyboard.type("Nobody read it")
        await page.keyboard.press("Control+Enter")
        with pytest.raises(Exception, match="Nobody read it"):
            await session["claude"].decision(second)
    await session["jonas"].end("The test is over")


async def test_risk_is_of_the_chosen_way_and_a_critical_one_waits_until_it_was_read(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Risky ways", "jonas", "maya", "claude")
    ways = (("make reset", "critical"), ("make plan", "low"), (LONG, "critical"))
    await propose_ways(session["claude"], *ways)
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/")
        card = page.get_by_role("article")
        approve = card.get_by_role("button", name="Approve")
        await expect(card).to_contain_text("Critical risk")
        await expect(approve).to_be_enabled()
        await card.get_by_role("radio").nth(1).check()
        await expect(card).to_contain_text("Low risk")
        await expect(approve).to_be_enabled()
        await card.get_by_role("radio").nth(2).check()
        await expect(card).to_contain_text("Critical risk")
        await expect(approve).to_be_disabled()
        await scroll_to_end(card.get_by_label("What would run").nth(2))
        await expect(approve).to_be_enabled()
    await session["jonas"].end("The test is over")


async def test_critical_change_waits_until_its_last_line_was_on_screen_for_each_gate_anew(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Critical", "jonas", "maya", "claude")
    lines = "\n".join(f"line {number}" for number in range(1200))
    for content in ("short", lines):
        await session["claude"].propose(
            "write",
            {"path": "deploy.sh", "content": content},
            category="file_write",
            risk="critical",
        )
    first, second = (await (await team.client("jonas")).session(session["jonas"].id)).gates
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open(f"/g/{first.id}")
        approve = page.get_by_role("button", name="Approve")
        await expect(approve).to_be_enabled()
        await page.keyboard.press("j")
        await expect(page.get_by_text("of 1,200 lines")).to_be_visible()
        await expect(page.get_by_text("Read the change to its end first.")).to_be_visible()
        await expect(approve).to_be_disabled()
        await page.keyboard.press("a")
        await expect(page.get_by_role("button", name="Yes, run exactly this")).to_have_count(0)
        change = page.get_by_label("Changes of deploy.sh")
        await expect(page.get_by_text("line 1199")).to_have_count(0)  # drawn as it is read
        for drawn in ("line 423", "line 823", "line 1199"):
            await expect(change.get_by_text(drawn)).to_be_attached()
            await expect(approve).to_be_disabled()
            await scroll_to_end(change)
        await expect(approve).to_be_enabled()
    assert second.request.action_ref != first.request.action_ref
    await session["jonas"].end("The test is over")


async def test_call_that_is_too_large_for_home_is_read_from_its_session_before_a_yes(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Large", "jonas", "maya", "claude")
    filler = "#" * 700_000
    for number in range(3):  # together more than what Home carries of calls
        await session["claude"].propose(
            "Bash", {"command": f"make part-{number} {filler}"}, category="shell_execute"
        )
    await session["claude"].propose(
        "Bash", {"command": f"rm -r build {filler}"}, category="shell_execute"
    )
    last = (await (await team.client("jonas")).session(session["jonas"].id)).gates[-1]
    async with signed_in(browser, page_server, *MAYA) as maya:
        address = f"{page_server.url}/sessions/{session['jonas'].id}"
        await maya.context.route(address, lambda route: route.abort())
        page = await maya.open(f"/g/{last.id}")
        await expect(page.get_by_text("The call is not here yet.")).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        await maya.context.unroute(address)
        await page.reload()
        await expect(page.get_by_label("What would run")).to_contain_text("rm -r build")
        await expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    await session["jonas"].end("The test is over")


# What the page tells the system, in order; the real calls happen, too.
RECORD = """
window.told = [];
if (location.protocol === "http:") {
  localStorage.setItem("accord.notices", "on");
  localStorage.setItem("accord.preferences", JSON.stringify({ sound: true }));
}
window.Notification = class extends Notification {
  constructor(title, options) { super(title, options); window.told.push(["notice", title]); }
  close() { window.told.push(["withdrawn", this.title]); super.close(); }
};
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (at) {
  window.told.push(["sound", ""]);
  start.call(this, at);
};
navigator.setAppBadge = async (count) => { window.told.push(["badge", String(count)]); };
navigator.clearAppBadge = async () => { window.told.push(["badge", ""]); };
Object.defineProperty(document, "visibilityState", { get: () => "hidden" });
"""


async def watching(maya: Visitor, script: str = RECORD) -> Page:
    """A page that its person does not look at."""
    await maya.context.grant_permissions(["notifications"])
    await maya.context.add_init_script(script)
    page = await maya.open("/")
    await page.get_by_role("heading", level=1).wait_for()
    return page


async def told(page: Page, wanted: list[str]) -> list[list[str]]:
    """Everything told, once this was."""
    script = """(wanted) => new Promise((done) => {
      const look = () => window.told.some((each) => each.join() === wanted.join())
        ? done(window.told) : setTimeout(look, 20);
      look();
    })"""
    found: Any = await page.evaluate(script, wanted)
    return [list(each) for each in found]


async def test_notice_sound_and_badge_end_when_another_person_decides(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Told", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await watching(maya)
        proposal = await propose_deletion(session["claude"])
        notice = ["notice", "claude: Delete something?"]
        await told(page, notice)
        heard = await told(page, ["badge", "1"])
        assert ["sound", ""] in heard

        await session["jonas"].approve(proposal)
        heard = await told(page, ["withdrawn", notice[1]])
        await told(page, ["badge", ""])
        assert heard.count(notice) == 1
    await session["jonas"].end("The test is over")


async def test_gate_that_still_waits_is_told_again_at_half_of_its_time(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Again", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await watching(maya)
        await page.evaluate("""() => { Notification.prototype.close = () => {}; }""")
        await session["claude"].propose(
            "shell",
            {"command": "make publish"},
            category="deploy",
            metadata={"gate_timeout_seconds": 3},
        )
        twice = """() => new Promise((done) => {
          const look = () => window.told.filter(([kind]) => kind === "notice").length > 1
            ? done(true) : setTimeout(look, 20);
          look();
        })"""
        assert await page.evaluate(twice)
    await session["jonas"].end("The test is over")


# As in Chrome on Android, where only a worker may show notices.
NO_CONSTRUCTOR = """
const real = window.Notification;
window.Notification = class {
  static get permission() { return real.permission; }
  constructor() { throw new TypeError("Illegal constructor. Use a service worker instead."); }
};
"""
SHOWN = """async (count) => {
  const registration = await navigator.serviceWorker.getRegistration("/notices/");
  while (true) {
    const notices = await registration?.getNotifications() ?? [];
    if (notices.length === count) return notices.map((each) => [each.title, each.body, each.data]);
    await new Promise(requestAnimationFrame);
  }
}"""
CLICK = """async () => {
  const [notification] = await registration.getNotifications();
  dispatchEvent(new NotificationEvent("notificationclick", { notification }));
}"""


async def test_notice_arrives_where_only_a_worker_may_show_it(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    session = await team.session("Phone", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, *MAYA, phone=True) as maya:
        page = await watching(maya, RECORD + NO_CONSTRUCTOR)
        async with maya.context.expect_event("serviceworker") as started:
            proposal = await propose_deletion(session["claude"])
        worker = await started.value
        ((title, body, data),) = await page.evaluate(SHOWN, 1)
        assert title == "claude: Delete something?"
        assert "Phone, medium risk" in body
        await worker.evaluate(CLICK)
        await page.wait_for_url(f"**{data['path']}")

        await session["jonas"].approve(proposal)
        await page.evaluate(SHOWN, 0)
    await session["jonas"].end("The test is over")
