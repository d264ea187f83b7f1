"""What was said in a commit's session, from the server, where git holds nothing of it."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.cli import where

if TYPE_CHECKING:
    from accord.show.timeline import Turn

PATIENCE_S = 3.0
MOST = 20_000


def recalled(record: Mapping[str, Any]) -> "list[Turn]":
    """The messages that led to the decisions; nothing where no server is named or none answers."""
    from accord.client.errors import ClientError
    from accord.core.kernel.refusal import Refused
    from accord.core.provenance.record import decisions_of
    from accord.settings import Settings
    from accord.show.timeline import turns

    known = Settings.here()
    asked = {each.pvp_session: set(each.pvp_messages) for each in decisions_of(dict(record))}
    if not (known.url and known.token and any(asked.values()) and where.answers(known.url)):
        return []
    try:
        return turns(asyncio.run(_said(asked)))
    except (ClientError, Refused, OSError, TimeoutError):
        return []


async def _said(asked: Mapping[str, set[str]]) -> list[dict[str, Any]]:
    source = where.Remote(where.client(argparse.Namespace(url=None, id=None)))
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        for session, ids in asked.items():
            seen = 0
            async for each in source.transcript(session):
                seen += 1
                if each.get("id") in ids:
                    found.append(each)
                if seen >= MOST:
                    break
    return found
