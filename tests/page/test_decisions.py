"""Several decisions at once, several ways to do one thing, and being told of what waits."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from accord.client import Session
from accord.core.policy.reported_call import CallKind, Place, ReportedCall, reported_metadata
from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import Visitor, signed_in
from tests.helpers.page.team import Team, propose_deletion
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
PART = f"tests/test_{'of_the_parts_' * 8}"  # so that 40 are higher than what a card shows at once
PLACE = Place(cwd="/work/shop", worktree="/work/shop", home="/home/claude")


async def propose_reported(agent: Session, command: str) -> str:
    """A call that a hook reports, so that the server classes it itself."""
    call = ReportedCall(CallKind.SHELL, "Bash", {"command": command}, PLACE)
    return await agent.propose(
        "Bash",
        {"command": command},
        category="shell_execute",
        metadata=reported_metadata(call, "shop"),
    )


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


async def watching(maya: Visitor) -> Page:
    """A page that its person does not look at."""
    await maya.context.grant_permissions(["notifications"])
    await maya.context.add_init_script(RECORD)
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
