"""People and settings: inviting somebody, removing them, and choosing how the page looks."""

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import signed_in, visitor
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_admin_invites_and_removes_a_person(
    browser: Browser, page_server: ServerProcess
) -> None:
    async with signed_in(browser, page_server, "maya", "admin") as maya:
        page = await maya.open("/people")
        await page.get_by_role("button", name="Invite…").click()
        await page.get_by_label("Name").fill("Tomás Brandt")
        await page.get_by_role("button", name="Make a link").click()
        link = await page.locator(".link code").inner_text()
        await expect(page.get_by_role("img", name="The link as a QR code")).to_be_visible()
        await page.get_by_role("button", name="Done").click()

        async with visitor(browser, page_server) as tomas:
            home = await tomas.open(link.removeprefix(page_server.url))
            await expect(home.get_by_role("heading", level=1, name="Home")).to_be_visible()

            await page.reload()
            row = page.get_by_role("listitem").filter(has_text="tom-s-brandt")
            await row.get_by_role("button", name="Remove…").click()
            await page.get_by_role("button", name="Remove", exact=True).click()
            await expect(page.get_by_text("is removed")).to_be_visible()
            await expect(home.get_by_role("heading", level=1, name="Come in")).to_be_visible()


async def test_only_admins_see_people(browser: Browser, page_server: ServerProcess) -> None:
    async with signed_in(browser, page_server, "olga", "observer") as olga:
        page = await olga.open("/")
        await expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()
        await expect(page.get_by_role("link", name="People")).to_have_count(0)
        await page.goto(f"{page_server.url}/people")
        await expect(page.get_by_role("alert")).to_contain_text("Only operators")


async def test_theme_is_kept(browser: Browser, page_server: ServerProcess) -> None:
    async with signed_in(browser, page_server, "jonas", "driver") as jonas:
        page = await jonas.open("/settings")
        await page.get_by_label("Dark").check()
        await page.reload()

        await expect(page.get_by_label("Dark")).to_be_checked()
        colour = "getComputedStyle(document.body).backgroundColor"
        assert await page.evaluate(colour) == "rgb(18, 18, 17)"


@pytest.mark.parametrize("path", ["/people", "/settings"])
async def test_screens_are_accessible(
    browser: Browser, page_server: ServerProcess, path: str
) -> None:
    async with signed_in(browser, page_server, "maya", "admin") as maya:
        page = await maya.open(path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            for width in (1440, 360):
                await page.set_viewport_size({"width": width, "height": 800})
                assert await serious_findings(page) == []
                wide = "document.documentElement.scrollWidth > innerWidth"
                assert not await page.evaluate(wide)
