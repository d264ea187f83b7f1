"""Small servers that store and read messages, to compare `/mcp` with.

python -m bench.small_servers starlette DB      a commit for each batch of requests
python -m bench.small_servers single DB         the same with a commit for each request
python -m bench.small_servers sdk DB            MCP by the SDK alone, a commit for each call
python -m bench.small_servers stdio DB          the same on standard input and output
"""

import argparse
import asyncio
import json
import logging
import socket
import sqlite3
from typing import TYPE_CHECKING

from bench.machine import pin

if TYPE_CHECKING:
    from mcp.server import MCPServer

MAX_BATCH = 512
BODY = "The mapper drops null fields; see the finding on line 42. " * 4


class Store:
    """Messages in SQLite, durable once `add` returns."""

    def __init__(self, path: str, *, batched: bool, rows: int = 0) -> None:
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY, thread TEXT, body TEXT)")
        self.db.execute("BEGIN")
        insert = "INSERT INTO messages (thread, body) VALUES ('th_1', ?)"
        self.db.executemany(insert, [(BODY,)] * rows)
        self.db.execute("COMMIT")
        self.batched = batched
        self.waiting: list[tuple[str, str, asyncio.Future[int]]] = []
        self.writing = False

    async def add(self, thread: str, body: str) -> int:
        """Store a message; returns its number."""
        if not self.batched:
            return self._write([(thread, body)])[0]
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append((thread, body, done))
        if not self.writing:
            self.writing = True
            asyncio.get_running_loop().call_soon(self._start)
        return await done

    def read(self, thread: str, after: int, limit: int) -> list[dict[str, object]]:
        """Messages behind a number."""
        query = "SELECT seq, body FROM messages WHERE seq > ? AND thread = ? ORDER BY seq LIMIT ?"
        found = self.db.execute(query, (after, thread, limit)).fetchall()
        return [{"seq": seq, "thread_id": thread, "body": body} for seq, body in found]

    def _start(self) -> None:
        self.task = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        while self.waiting:
            batch, self.waiting = self.waiting[:MAX_BATCH], self.waiting[MAX_BATCH:]
            rows = [(thread, body) for thread, body, _ in batch]
            numbers = await asyncio.to_thread(self._write, rows)
            for (_, _, done), number in zip(batch, numbers, strict=True):
                done.set_result(number)
        self.writing = False

    def _write(self, rows: list[tuple[str, str]]) -> list[int]:
        self.db.execute("BEGIN IMMEDIATE")
        insert = "INSERT INTO messages (thread, body) VALUES (?, ?)"
        numbers = [int(self.db.execute(insert, row).lastrowid or 0) for row in rows]
        self.db.execute("COMMIT")
        return numbers


def starlette_app(store: Store) -> object:
    """`POST /post {thread_id, body}` and nothing else."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def post(request: Request) -> JSONResponse:
        asked = json.loads(await request.body())
        return JSONResponse({"seq": await store.add(asked["thread_id"], asked["body"])})

    return Starlette(routes=[Route("/post", post, methods=["POST"])])


def sdk_server(store: Store) -> "MCPServer":
    """The SDK's minimal server with two tools."""
    from mcp.server import MCPServer

    server = MCPServer("small")

    @server.tool()
    async def post_message(thread_id: str, schema_version: int, body: str) -> dict[str, int]:
        """Store a message."""
        return {"seq": await store.add(thread_id, body), "schema_version": schema_version}

    @server.tool()
    async def read_messages(
        thread_id: str, since_seq: int, limit: int
    ) -> dict[str, list[dict[str, object]]]:
        """Messages behind a number."""
        return {"messages": store.read(thread_id, since_seq, limit)}

    return server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["starlette", "single", "sdk", "stdio"])
    parser.add_argument("db")
    parser.add_argument("--rows", type=int, default=0, help="messages that are there already")
    parser.add_argument("--core", type=int)
    args = parser.parse_args()
    pin(args.core)
    logging.disable(logging.INFO)  # the SDK says a lot
    store = Store(args.db, batched=args.kind == "starlette", rows=args.rows)
    if args.kind == "stdio":
        sdk_server(store).run("stdio")
        return
    if args.kind == "sdk":
        app: object = sdk_server(store).streamable_http_app(json_response=True)
    else:
        app = starlette_app(store)
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print("READY", listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, loop="uvloop")  # type: ignore[arg-type]  # any ASGI application
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
