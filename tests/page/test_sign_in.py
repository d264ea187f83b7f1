"""Signing in with a link, devices, signing out; and what the address and storage never hold."""

import pytest
from playwright.async_api import Browser, expect

from tests.helpers.page.accessibility import serious_findings
from tests.helpers.page.browser import sign_in_code, signed_in, visitor
from tests.helpers.servers.server_process import ServerProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_link_signs_in_once_and_leaves_no_trace(
    browser: Browser, page_server: ServerProcess
) -> None:
    code = sign_in_code(page_server, "maya", "admin", "driver", name="Maya Okafor")
    async with visitor(browser, page_server) as maya:
        page = await maya.open(f"/#code={code}")
        await expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()

        assert code not in page.url
        assert await page.evaluate("document.cookie") == ""
        stored = await page.evaluate("JSON.stringify([localStorage, sessionStorage])")
        assert code not in stored
        assert "eyJ" not in stored
        cookie = (await maya.context.cookies())[0]
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        await page.reload()
        await expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()

    async with visitor(browser, page_server) as someone:
        page = await someone.open(f"/#code={code}")
        await expect(page.get_by_role("alert")).to_be_visible()
        await expect(page.get_by_role("heading", level=1, name="Come in")).to_be_visible()
        assert code not in page.url


async def test_pasted_link_signs_in(browser: Browser, page_server: ServerProcess) -> None:
    code = sign_in_code(page_server, "jonas", "driver", "approver")
    async with visitor(browser, page_server) as jonas:
        page = await jonas.open("/settings")
        await page.get_by_label("Sign-in link or code").fill(f"{page_server.url}/#code={code}")
        await page.keyboard.press("Enter")

        await expect(page.get_by_role("heading", level=1, name="Settings")).to_be_visible()


async def test_second_device_is_signed_out_without_being_touched(
    browser: Browser, page_server: ServerProcess
) -> None:
    async with (
        signed_in(browser, page_server, "priya", "approver") as laptop,
        signed_in(browser, page_server, "priya", "approver", phone=True) as phone,
    ):
        on_phone = await phone.open("/")
        await expect(on_phone.get_by_role("heading", name="Nothing waits for you.")).to_be_visible()
        page = await laptop.open("/settings")
        await page.get_by_role("button", name="Sign out", exact=True).click()

        await expect(on_phone.get_by_role("heading", level=1, name="Come in")).to_be_visible()
        await expect(page.get_by_role("button", name="Sign out", exact=True)).to_have_count(0)
        await page.get_by_role("button", name="Sign out here").click()
        await expect(page.get_by_text("You signed out.")).to_be_visible()


async def test_signing_out_in_one_tab_signs_out_the_other(
    browser: Browser, page_server: ServerProcess
) -> None:
    async with signed_in(browser, page_server, "lena", "approver") as lena:
        first, second = await lena.open("/"), await lena.open("/settings")
        await second.get_by_role("button", name="Sign out here").click()

        await expect(first.get_by_role("heading", level=1, name="Come in")).to_be_visible()


async def test_sign_out_everywhere_ends_this_browser_and_all_others(
    browser: Browser, page_server: ServerProcess
) -> None:
    async with (
        signed_in(browser, page_server, "tomas", "approver") as laptop,
        signed_in(browser, page_server, "tomas", "approver", phone=True) as phone,
        signed_in(browser, page_server, "tomas", "approver") as tablet,
    ):
        others = [await each.open("/") for each in (phone, tablet)]
        for other in others:
            await expect(
                other.get_by_role("heading", name="Nothing waits for you.")
            ).to_be_visible()
        page = await laptop.open("/settings")
        await page.get_by_role("button", name="Sign out everywhere").click()
        for each in (page, *others):
            await expect(each.get_by_role("heading", level=1, name="Come in")).to_be_visible()
        for device in (laptop, phone, tablet):
            answer = await device.context.request.get(f"{page_server.url}/home")
            assert answer.status == 401


async def test_neither_code_nor_token_is_in_the_log_a_referrer_or_an_address(
    browser: Browser, page_server: ServerProcess
) -> None:
    code = sign_in_code(page_server, "ida", "driver", "approver")
    async with visitor(browser, page_server) as ida:
        asked: list[str] = []
        ida.context.on(
            "request",
            lambda each: asked.append(f"{each.url} {each.headers.get('referer', '')}"),
        )
        page = await ida.open(f"/#code={code}")
        await expect(page.get_by_role("heading", level=1, name="Home")).to_be_visible()
        await page.reload()
        await page.get_by_role("navigation", name="Main").get_by_text("Threads").click()
        await expect(page.get_by_role("heading", level=1, name="Threads")).to_be_visible()
        (cookie,) = await ida.context.cookies()
        secrets = (code, cookie["value"], *cookie["value"].split("."))
        # The browser's own first address has the code behind its `#`, which is not sent.
        sent = [
            each.split("#")[0] if each.startswith(f"{page_server.url}/#") else each
            for each in asked
        ]
        seen = "\n".join([*sent, await page.evaluate("document.referrer"), page.url])
        assert "/sign-in" in seen
        for secret in secrets:
            assert secret not in seen
            assert secret not in page_server.log


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_sign_in_screen_is_accessible(
    browser: Browser, page_server: ServerProcess, theme: str
) -> None:
    async with visitor(browser, page_server, theme=theme) as someone:  # type: ignore[arg-type]
        page = await someone.open("/")
        await expect(page.get_by_role("heading", level=1, name="Come in")).to_be_visible()

        assert await serious_findings(page) == []
