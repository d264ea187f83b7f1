"""The page a browser gets at `/`."""

from collections.abc import Awaitable, Callable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from accord import __version__

# No scripts, no external resources, no framing, no referrer.
PAGE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

HOME_TEMPLATE = """<!doctype html>
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
<p>This Accord server (version {version}) is running. People and coding agents decide together
here, and nothing risky runs until the right people agree.</p>
<p>There is no web interface yet; use the command line{who}:</p>
<pre>{lines}</pre>
{link}<p>Programs use PVP over WebSocket at <code>/ws</code> or over HTTP; see
<a href="/asyncapi.json">/asyncapi.json</a> and <a href="/openapi.json">/openapi.json</a>.</p>
</html>
"""
EXAMPLE_COMMANDS = """accord session create --name "First steps"
accord session list
accord session log SESSION --follow
accord session join SESSION
accord gates"""
SIGN_IN_HINT = ", with the sign-in link that the server printed or an operator gave you"
SIGN_IN_LINK_TEXT = """<p>The sign-in link leads here. The part after <code>#code=</code> is a code
that works once: your browser did not send it to the server, so the link is still good for
<code>accord login</code>.</p>
"""


def home_page_handler(*, is_open: bool) -> Callable[[Request], Awaitable[Response]]:
    """A page that says what this server is and how to connect.

    `is_open` when no token is needed.
    """
    commands = [
        f"{command} --as YOU" if is_open else command for command in EXAMPLE_COMMANDS.splitlines()
    ]

    def first_line(url: str) -> str:
        return f"export ACCORD_URL={url}" if is_open else f"accord login '{url}#code=…'"

    async def handler(request: Request) -> Response:
        url = str(request.base_url).rstrip("/")
        page = HOME_TEMPLATE.format(
            version=__version__,
            who="" if is_open else SIGN_IN_HINT,
            lines=escape("\n".join([first_line(url), *commands]), quote=False),
            link="" if is_open else SIGN_IN_LINK_TEXT,
        )
        return HTMLResponse(page, headers=PAGE_HEADERS)

    return handler
