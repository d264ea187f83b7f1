"""Photographs every screen of the page with realistic content: light, dark, and on a phone.

python -m tools.photograph_page [DIR]      default: build/pictures
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from accord.api.policies import StandingGrantRequest
from tests.helpers.page.board_scene import pact_of_an_afternoon
from tests.helpers.page.browser import launch, signed_in, visitor
from tests.helpers.page.docket_scene import release
from tests.helpers.page.forks_scene import two_ways
from tests.helpers.page.harbor import afternoon
from tests.helpers.page.team import team_at
from tests.helpers.page.threads_scene import threads_of_an_afternoon
from tests.helpers.page.why_scene import commit_of_a_session
from tests.helpers.servers.server_process import ServerProcess, run_server

ROOT = Path(__file__).resolve().parents[1]

SCREENS = {"home": "/", "people": "/people", "settings": "/settings"}
LOOKS = {"light": ("light", False), "dark": ("dark", False), "phone": ("light", True)}


async def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as data, run_server(Path(data)) as server:
        async with launch() as browser:
            await photograph_empty(browser, server, folder)
            async with team_at(server) as team:
                login = await afternoon(team)
                gate = (await (await team.client("maya")).home()).gates[0].id
                session = {"gate": f"/g/{gate}", "session": f"/s/{login['maya'].id}"}
                review = await threads_of_an_afternoon(team)
                await commit_of_a_session(team)
                session["forks"] = f"/s/{(await two_ways(team))['maya'].id}/forks"
                await pact_of_an_afternoon(team, Path(data) / "harbor" / ".pact")
                session |= {"board": "/board", "task": "/board/T44"}
                release_42 = (await release(team, "Release 42"))["maya"].id
                session |= {"docket": f"/docket/{release_42}/release/ROTATE", "grants": "/grants"}
                session["replay"] = f"/s/{login['maya'].id}?at=4"
                grant = StandingGrantRequest(
                    agent="claude", run=("uv run pytest **",), count=20, seconds=1800
                )
                await team.clients["jonas"].give_standing_grant(login["maya"].id, grant)
                threads = {"threads": "/threads", "thread": f"/threads/{review}", "why": "/why"}
                for look in LOOKS:
                    await photograph(browser, server, folder, look, SCREENS | session | threads)


async def photograph_empty(browser: Browser, server: ServerProcess, folder: Path) -> None:
    async with visitor(browser, server) as someone:
        page = await someone.open("/")
        await settled(page)
        await page.screenshot(path=folder / "sign-in-light.png")
    async with signed_in(browser, server, "maya", "admin", name="Maya Okafor") as maya:
        page = await maya.open("/")
        await settled(page)
        await page.screenshot(path=folder / "home-empty-light.png")


async def photograph(
    browser: Browser, server: ServerProcess, folder: Path, look: str, screens: dict[str, str]
) -> None:
    theme, phone = LOOKS[look]
    maya_roles = ("admin", "driver", "approver")
    options: dict[str, Any] = {"name": "Maya Okafor", "theme": theme, "phone": phone}
    async with signed_in(browser, server, "maya", *maya_roles, **options) as maya:
        for name, path in screens.items():
            page = await maya.open(path)
            await settled(page)
            await page.screenshot(path=folder / f"{name}-{look}.png")
            print(folder / f"{name}-{look}.png", flush=True)
            await page.close()


async def settled(page: Page) -> None:
    """Fonts and content are there."""
    await page.get_by_role("heading", level=1).first.wait_for()
    await page.evaluate("document.fonts.ready")
    await page.wait_for_load_state("load")
    await page.wait_for_timeout(700)


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "pictures"
    where.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(where))
