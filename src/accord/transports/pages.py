"""What a browser finds at the bare address."""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

HOME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Accord</title>
<style>
 body { font: 16px/1.6 system-ui, sans-serif; max-width: 38rem; margin: 12vh auto; padding: 0 1rem;
        color: #1c1e21; background: #fbfaf8 }
 h1 { font-weight: 600; letter-spacing: -.02em }
 code, pre { font: 14px/1.6 ui-monospace, monospace }
 pre { background: #f0eee9; padding: 1rem; border-radius: 8px; overflow-x: auto }
 @media (prefers-color-scheme: dark) { body { color: #e8e6e3; background: #17181a }
  pre { background: #222427 } }
</style>
<h1>Accord</h1>
<p>People and coding agents decide together here, and nothing risky runs until the right people
agree. This server speaks PVP over WebSocket at <code>/ws</code> and over HTTP; programs find out
how at <a href="/openapi.json">/openapi.json</a> and
<a href="/asyncapi.json">/asyncapi.json</a>.</p>
<p>From a shell, with the token the server printed or an operator gave you:</p>
<pre>export ACCORD_URL={url}
export ACCORD_TOKEN=…
accord session create --name "First steps"
accord gates</pre>
<p>This version has no page of its own to work on. The sign-in link leads here, and into that page
once it is there; until then the shell is the way in.</p>
</html>
"""


async def home(request: Request) -> Response:
    """A page that says what this is and how to come in."""
    return HTMLResponse(HOME.replace("{url}", str(request.base_url).rstrip("/")))
