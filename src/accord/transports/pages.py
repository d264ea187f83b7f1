"""What a browser finds at the bare address."""

from collections.abc import Awaitable, Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from accord import __version__

# Nothing runs, nothing is loaded from anywhere, nobody frames it, and no link tells where one was.
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

HOME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Accord</title>
<style>
 body {{ font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 12vh auto;
        padding: 0 1rem; color: #1c1e21; background: #fbfaf8 }}
 h1 {{ font-weight: 600; letter-spacing: -.02em }}
 code, pre {{ font: 14px/1.6 ui-monospace, monospace }}
 pre {{ background: #f0eee9; padding: 1rem; border-radius: 8px; overflow-x: auto }}
 @media (prefers-color-scheme: dark) {{ body {{ color: #e8e6e3; background: #17181a }}
  a {{ color: #9ecbff }} pre {{ background: #222427 }} }}
</style>
<h1>Accord</h1>
<p>This is an Accord server, version {version}, and it runs. People and coding agents decide
together here, and nothing risky runs until the right people agree.</p>
<p>There is no page to work on yet; the shell is the way in{who}:</p>
<pre>{lines}</pre>
{link}<p>Programs speak PVP over WebSocket at <code>/ws</code> and over HTTP, as
<a href="/asyncapi.json">/asyncapi.json</a> and <a href="/openapi.json">/openapi.json</a> say.</p>
</html>
"""
COMMANDS = """accord session create --name "First steps"
accord session list
accord session log SESSION --follow
accord gates --session SESSION"""
HOLDING = ", with the token that the server printed or an operator gave you"
SIGN_IN_LINK = """<p>The sign-in link leads here. What stands behind <code>#token=</code> in it is
that token: the browser has not sent it, but its history keeps it.</p>
"""


def home(*, is_open: bool) -> Callable[[Request], Awaitable[Response]]:
    """A page that says what this is and how to come in; `is_open` where names are believed."""
    secret = [] if is_open else ["export ACCORD_TOKEN=…"]
    commands = [f"{each} --as YOU" if is_open else each for each in COMMANDS.splitlines()]

    async def shown(request: Request) -> Response:
        url = str(request.base_url).rstrip("/")
        page = HOME.format(
            version=__version__,
            who="" if is_open else HOLDING,
            lines=escape("\n".join([f"export ACCORD_URL={url}", *secret, *commands]), quote=False),
            link="" if is_open else SIGN_IN_LINK,
        )
        return HTMLResponse(page, headers=HEADERS)

    return shown
