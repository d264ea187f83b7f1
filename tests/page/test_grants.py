"""Standing grants and policies: a yes beforehand, its end, and what a signed policy says."""

from hashlib import sha256

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import signed_in
from tests.helpers.page.team import Team, propose_reported
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAYA = ("maya", "admin", "driver", "approver")
POLICY = """version = 1
[[command]]
run = ["pytest **"]
category = "shell_execute"
risk = "low"
reason = "runs the tests"
"""


async def test_grant_given_in_the_page_lets_the_next_call_pass_until_it_is_ended(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Granted here", "jonas", "maya", "claude")
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/grants")
        await expect(page.get_by_text("No standing grant is in force.")).to_be_visible()
        await page.get_by_role("button", name="New grant…").click()
        dialog = page.get_by_role("dialog", name="New standing grant")
        await dialog.get_by_label("Commands, one per line").fill("uv run pytest **")
        await dialog.get_by_label("How often at most").fill("5")
        assert await serious_findings(page) == []
        await dialog.get_by_role("button", name="Say yes beforehand").click()
        await expect(page.get_by_text("0 of 5 used")).to_be_visible()

        passed = await propose_reported(room["claude"], "uv run pytest tests/test_auth.py")
        assert (await room["claude"].decision(passed)).standing == ("maya",)
        await expect(page.get_by_text("1 of 5 used")).to_be_visible()
        assert await serious_findings(page) == []

        await page.get_by_role("button", name="End", exact=True).click()
        await expect(page.get_by_text("No standing grant is in force.")).to_be_visible()
        await propose_reported(room["claude"], "uv run pytest tests/test_mail.py")
        gates = (await (await team.client("jonas")).session(room["jonas"].id)).gates
        assert len(gates) == 1
    await room["jonas"].end("The test is over")


async def test_signed_policy_of_a_repository_is_shown_to_the_letter(
    browser: Browser, page_server: ServerProcess
) -> None:
    digest = sha256(POLICY.encode()).hexdigest()
    body = {"repository": "shop", "digest": digest, "text": POLICY}
    page_server.admin_request("POST", "/admin/policies", body)
    async with signed_in(browser, page_server, *MAYA) as maya:
        page = await maya.open("/grants")
        await page.get_by_role("combobox", name="Repository").fill("nowhere")
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("alert")).to_contain_text("No policy is signed")
        await page.get_by_role("combobox", name="Repository").fill("shop")
        await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_role("status").filter(has_text="Signed by")).to_contain_text(
            digest[:12]
        )
        shown = await page.get_by_role("region", name="Policy", exact=True).inner_text()
        assert shown.strip() == POLICY.strip()
        assert await serious_findings(page) == []
