"""Draws the PNG icons of the installed page from its SVG; run it when the SVG has changed.

python tools/page_icons.py
"""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PUBLIC = ROOT / "web" / "public"
SIZES = (192, 512)


async def main() -> None:
    from tests.helpers.page.browser import launch

    svg = (PUBLIC / "app-icon.svg").read_text("utf-8")
    async with launch() as browser:
        for size in SIZES:
            page = await browser.new_page(viewport={"width": size, "height": size})
            await page.set_content(
                f"<style>body{{margin:0}}svg{{display:block;width:{size}px;height:{size}px}}</style>{svg}"
            )
            await page.screenshot(path=PUBLIC / f"app-icon-{size}.png")
            await page.close()


if __name__ == "__main__":
    asyncio.run(main())
