"""What a balancer asks: whether the server lives, and whether it can work."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response


async def healthz(request: Request) -> Response:
    """Alive."""
    return PlainTextResponse("ok\n")
