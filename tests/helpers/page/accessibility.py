"""axe on a page: no serious or critical finding."""

from functools import cache
from pathlib import Path

from playwright.async_api import Page

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
RUN = """async () => {
  const found = await axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  });
  return found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 200)).join(" | ")}`);
}"""


@cache
def axe_source() -> str:
    return AXE.read_text("utf-8")


async def serious_findings(page: Page) -> list[str]:
    """What axe finds; it is evaluated, not inserted, so the page's policy does not apply to it."""
    if not await page.evaluate("() => typeof axe !== 'undefined'"):
        await page.evaluate(axe_source())
    found: list[str] = await page.evaluate(RUN)
    return found
