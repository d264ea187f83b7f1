"""A real Chromium on the page: people who sign in, and everything that must not happen."""

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    async_playwright,
)

from tests.helpers.servers.server_process import ServerProcess
from tools.test_programs import CHROMIUM

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 360, "height": 780}
Theme = Literal["light", "dark"]
# What a browser reports of a refused request is expected where the test refuses one.
EXPECTED_CONSOLE = ("Failed to load resource", "net::ERR_")


@asynccontextmanager
async def launch() -> AsyncIterator[Browser]:
    """A browser; without one the test fails in CI and is skipped elsewhere."""
    path = CHROMIUM.find()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(CHROMIUM.how_to_install)
    # Root has no sandbox, and nothing here comes from elsewhere.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        env: Any = {**os.environ, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=path, args=flags, env=env)
            try:
                yield browser
            finally:
                await browser.close()


class Visitor:
    """One person's browser, and what it complained about."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith(EXPECTED_CONSOLE):
            self.complaints.append(message.text)

    async def open(self, path: str = "/") -> Page:
        page = await self.context.new_page()
        await page.goto(self.url + path)
        return page

    def check(self) -> None:
        """No script failed, the policy was not violated, and no other host was asked."""
        assert not self.complaints, self.complaints
        assert self.hosts <= {self.url.split("/")[2]}


@asynccontextmanager
async def visitor(
    browser: Browser,
    server: ServerProcess,
    *,
    theme: Theme = "light",
    phone: bool = False,
    **options: Any,
) -> AsyncIterator[Visitor]:
    """A browser without a past; it is checked at the end."""
    size: Any = PHONE if phone else DESKTOP
    context = await browser.new_context(
        viewport=size,
        color_scheme=theme,
        has_touch=phone,
        is_mobile=phone,
        locale="en-GB",
        timezone_id="UTC",
        **options,
    )
    context.set_default_timeout(20_000)
    someone = Visitor(context, server.url)
    try:
        yield someone
    finally:
        await context.close()
    someone.check()


def sign_in_code(server: ServerProcess, id: str, *roles: str, name: str = "") -> str:
    """A one-time code for this person."""
    body = {"id": id, "roles": list(roles), "name": name or id}
    code: str = server.admin_request("POST", "/admin/invitations", body)["code"]
    return code


@asynccontextmanager
async def signed_in(
    browser: Browser, server: ServerProcess, id: str, *roles: str, name: str = "", **options: Any
) -> AsyncIterator[Visitor]:
    """A person's browser that has used a sign-in link."""
    async with visitor(browser, server, **options) as someone:
        page = await someone.open(f"/#code={sign_in_code(server, id, *roles, name=name)}")
        await page.get_by_role("heading", level=1, name="Home").wait_for()
        await page.close()
        yield someone


async def steady(page: Page) -> None:
    """Buttons answer only after their card has stood still for a moment, which it then says."""
    await page.locator("[data-steady]").first.wait_for(state="attached")
