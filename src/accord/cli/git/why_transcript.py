"""Fetches the conversation behind a commit from the server if git does not have it."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.cli import connection

if TYPE_CHECKING:
    from accord.show.timeline.state import Turn

SERVER_TIMEOUT_S = 3.0
MAX_SCANNED = 20_000


def fetch_transcript(record: Mapping[str, Any]) -> "list[Turn]":
    """The messages that led to the decisions; empty if no server is configured or none answers."""
    from accord.client.errors import ClientError
    from accord.client.http_client import is_listening
    from accord.core.kernel.refusal import Refused
    from accord.core.provenance.decision_commit import decisions_of
    from accord.settings.client import Settings
    from accord.show.timeline.timeline import turns_of

    known = Settings.for_client()
    wanted = {
        decision.pvp_session: set(decision.pvp_messages) for decision in decisions_of(dict(record))
    }
    if not (known.url and known.token and any(wanted.values()) and is_listening(known.url)):
        return []
    try:
        return turns_of(asyncio.run(_fetch_messages(wanted)))
    except (ClientError, Refused, OSError, TimeoutError):
        return []


async def _fetch_messages(wanted: Mapping[str, set[str]]) -> list[dict[str, Any]]:
    source = connection.RemoteSessions(connection.client_for(argparse.Namespace(url=None, id=None)))
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(SERVER_TIMEOUT_S):
        for session, ids in wanted.items():
            seen = 0
            async for envelope in source.transcript(session):
                seen += 1
                if envelope.get("id") in ids:
                    found.append(envelope)
                if seen >= MAX_SCANNED:
                    break
    return found
