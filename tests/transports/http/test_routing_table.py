"""The table of what can be asked over HTTP is what the server serves."""

from collections import Counter
from pathlib import Path
from typing import Any

from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog
from accord.transports.http.routing_table import ALL_ENDPOINTS


async def test_every_row_is_a_route_and_says_what_it_does(tmp_path: Path) -> None:
    app: Any = Server(ServerOptions(home=tmp_path), MemoryLog()).asgi_app()
    while not hasattr(app, "routes"):
        app = app.app
    served = {
        (method, route.path) for route in app.routes for method in getattr(route, "methods", ())
    }

    rows = Counter((row.method, row.path) for row in ALL_ENDPOINTS)

    assert set(rows) <= served
    assert set(rows.values()) == {1}
    assert all(row.summary.endswith(".") for row in ALL_ENDPOINTS)


def test_numbers_of_a_query_have_bounds_and_a_usual_value() -> None:
    numbers = [each for row in ALL_ENDPOINTS for each in row.query if each.maximum is not None]

    assert numbers
    for each in numbers:
        assert each.default is not None
        assert each.maximum is not None
        assert each.minimum <= each.default <= each.maximum
