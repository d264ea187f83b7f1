"""An observer with the console open: every message there is, and nothing of it is recorded."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from accord.client import Client, Session
from accord.core.dialects.pvp import BODIES
from accord.core.kernel.role_permissions import MEMBER_PERMISSIONS
from tests.core.dialects.envelopes import CLAUDE, PAYLOADS
from tests.helpers.page.browser import signed_in
from tests.helpers.page.team import Team, propose_migration
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
# What everybody may say, and of themselves alone: who they are, that they are here, that they go.
OF_ONESELF = {name for name, body in BODIES.items() if body.needs in MEMBER_PERMISSIONS}
# As a script on the page would do it: with the cookie that no script reads.
SAY = """async ([session, sender, type, payload]) => {
  const envelope = {
    v: 1, id: crypto.randomUUID(), ts: new Date().toISOString(), session, sender, type, payload,
  };
  const response = await fetch(`/sessions/${session}/messages`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(envelope),
  });
  return response.status;
}"""
OLGA: dict[str, Any] = CLAUDE | {"id": "olga", "type": "human", "roles": ["admin", "driver"]}
SELF = dict.fromkeys(("agent", "approver", "rejector", "by", "changed_by"), "olga")


def payloads(prompt: str, proposal: str, gate: str, fork: str) -> dict[str, dict[str, Any]]:
    """One of every type about what there is, each signed by Olga."""
    there_is: dict[str, Any] = {
        **SELF,
        **dict.fromkeys(("prompt_ref", "original_prompt", "from_point", "action_ref"), prompt),
        **dict.fromkeys(("tool_proposal", "related_to", "interrupt", "merge_proposal"), proposal),
        **dict.fromkeys(("source_fork", "target_fork"), fork),
        "gate": gate,
        "contributors": ["olga"],
    }
    whole = {
        name: {key: there_is.get(key, value) for key, value in payload.items()}
        for name, payload in PAYLOADS.items()
    }
    whole["participant.role_change"] |= {
        "participant": "olga",
        "old_roles": ["observer"],
        "new_roles": ["admin"],
    }
    whole["session.join"]["participant"] = OLGA
    whole["participant.announce"] = OLGA
    whole["presence.update"]["participant"] = "olga"
    whole["session.leave"]["participant"] = "olga"
    return whole


async def say(page: Page, session: str, type: str, payload: dict[str, Any]) -> int:
    status: int = await page.evaluate(SAY, [session, "olga", type, payload])
    return status


async def said(client: Client, session: Session) -> list[tuple[str, str]]:
    """Who said what, by the session's log."""
    return [(each.sender, each.type) async for each in client.history(session.id)]


async def decided(client: Client, session: Session) -> list[tuple[str, str]]:
    """What is recorded but comings and goings: the page itself joins at its own time."""
    return [each for each in await said(client, session) if each[1] not in OF_ONESELF]


async def test_observer_with_the_console_open_records_nothing_by_any_message(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Watched by Olga", "maya", "jonas", "claude")
    client = await team.client("maya")
    prompt = await room["maya"].prompt("Migrate it", "claude")
    await room["maya"].add_context("requirements", "a\n")
    fork = await room["maya"].fork("other", ["jonas"], reason="Another way")
    proposal = await propose_migration(room["claude"])
    token = page_server.issue_token("olga", "human", ("observer",))
    async with Client(page_server.url, token=token) as olga:
        await olga.join(room["maya"].id, listen=False)
    gate = (await client.session(room["maya"].id)).gates[0].id
    whole = payloads(prompt, proposal, gate, fork)
    assert whole.keys() == BODIES.keys()
    async with signed_in(browser, page_server, "olga", "observer") as visitor:
        page = await visitor.open(f"/s/{room['maya'].id}")
        await expect(page.get_by_text("Observers read.")).to_be_visible()
        before = await decided(client, room["maya"])
        answers = {
            name: await say(page, room["maya"].id, name, whole[name])
            for name in sorted(BODIES.keys() - OF_ONESELF)
        }
        assert answers == dict.fromkeys(answers, 403)
        assert await decided(client, room["maya"]) == before

        # The rest she may say, of herself, and it gives her nothing.
        for name in sorted(OF_ONESELF - {"session.leave"}):
            await say(page, room["maya"].id, name, whole[name])
        assert await decided(client, room["maya"]) == before
        hers = {type for sender, type in await said(client, room["maya"]) if sender == "olga"}
        assert hers <= OF_ONESELF
        now = await client.session(room["maya"].id)
        (member,) = (each for each in now.members if each.id == "olga")
        assert [str(role) for role in member.roles] == ["observer"]
        assert [each.id for each in now.gates] == [gate]
        assert await say(page, room["maya"].id, "context.add", whole["context.add"]) == 403
