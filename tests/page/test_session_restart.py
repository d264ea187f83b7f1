"""The server is killed in the middle of a stream: the page comes back without loss or repeat."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.page.browser import EXPECTED_CONSOLE, signed_in
from tests.helpers.page.team import Team, team_at
from tests.helpers.servers.server_process import ServerProcess, run_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
ADMIN = ("admin", "driver", "approver")


async def test_a_stream_goes_on_after_a_kill_without_loss_or_repeat(
    browser: Browser, tmp_path: Path
) -> None:
    words = [f"word{number} " for number in range(60)]
    with run_server(tmp_path) as server:
        async with (
            team_at(server) as team,
            signed_in(browser, server, "maya", *ADMIN) as maya,
        ):
            room = await team.session("Killed", "maya", "claude")
            prompt = await room["maya"].prompt("Count", "claude")
            page = await maya.open(f"/s/{room['maya'].id}")
            out = room["claude"].respond(prompt)
            await out.__aenter__()
            for word in words[:20]:
                await out.write(word)
            answer = page.locator(".markdown")
            await expect(answer).to_contain_text(words[19].strip())
            field = page.get_by_label("Prompt, written together")
            await field.fill("Kept while it is away")

            server.kill()
            await expect(page.get_by_text("The server is away.").first).to_be_visible()
            server.restart()
            for word in words[20:]:
                await out.write(word)
            await out.__aexit__(None, None, None)

            await expect(answer).to_contain_text(words[-1].strip())
            assert (await answer.inner_text()).split() == [word.strip() for word in words]
            await expect(field).to_have_value("Kept while it is away")
            await expect(page.get_by_text("The server is away.")).to_have_count(0)
            # A browser reports connections that were refused while the server was away.
            maya.complaints[:] = [
                each
                for each in maya.complaints
                if "WebSocket" not in each and not each.startswith(EXPECTED_CONSOLE)
            ]


async def test_a_night_without_network_loses_and_repeats_nothing(
    browser: Browser, page_server: ServerProcess, team: Team
) -> None:
    room = await team.session("Night", "maya", "jonas", "claude")
    said = [f"Said {number}." for number in range(12)]
    async with signed_in(browser, page_server, "maya", *ADMIN) as maya:
        page = await maya.context.new_page()
        await page.clock.install()
        await page.goto(f"{page_server.url}/s/{room['maya'].id}")
        for words in said[:4]:
            await room["jonas"].prompt(words, "claude")
        await expect(page.get_by_text(said[3])).to_be_visible()
        field = page.get_by_label("Prompt, written together")
        await field.fill("For the morning")

        # What ends the open connections; new ones fail until the network is back.
        await maya.context.set_offline(True)
        page_server.kill()
        await expect(page.get_by_text("The server is away.").first).to_be_visible()
        page_server.restart()
        for words in said[4:]:
            await room["jonas"].prompt(words, "claude")
        await page.clock.fast_forward("09:00:00")
        await expect(page.get_by_text(said[4])).to_have_count(0)
        await maya.context.set_offline(False)
        await page.clock.resume()

        await expect(page.get_by_text(said[-1])).to_be_visible()
        shown = page.get_by_role("feed").get_by_text("Said ")
        await expect(shown).to_have_text(said)
        await expect(field).to_have_value("For the morning")
        await room["jonas"].prompt("Good morning.", "claude")
        await expect(page.get_by_text("Good morning.")).to_have_count(1)
        await expect(shown).to_have_text(said)
        maya.complaints[:] = [each for each in maya.complaints if "WebSocket" not in each]
