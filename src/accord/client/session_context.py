"""Shared context items, and secrets whose values are never stored."""

from collections.abc import Iterable
from typing import Any, Literal

from accord.client.connection.outbox import AcceptedMessage
from accord.client.session_base import SessionBase
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.shared_context.secrets import SecretRevoke, SecretShare
from accord.core.room.state import ContentRef

Content = str | dict[str, Any]
ContentType = Literal["text", "file", "reference", "structured", "image", "audio_transcript"]
SecretType = Literal["api_key", "database_url", "token", "credential", "other"]


class ContextMethods(SessionBase):
    """The methods of a session for context items and secrets."""

    async def add_context(
        self,
        key: str,
        content: Content | None = None,
        *,
        ref: ContentRef | None = None,
        content_type: ContentType | None = None,
        visible_to: Iterable[str] | None = None,
        source: str | None = None,
        tags: Iterable[str] = (),
    ) -> AcceptedMessage:
        """Share an item with all members or those named; adding one's own key again replaces it."""
        body = ContextAdd(
            key=key,
            content_type=content_type or default_content_type(content),
            content=content,
            content_ref=ref,
            visible_to=None if visible_to is None else tuple(visible_to),
            source=source,
            tags=tuple(tags) or None,
        )
        return await self.send(body)

    async def update_context(
        self,
        key: str,
        content: Content | None = None,
        *,
        diff: str | None = None,
        ref: ContentRef | None = None,
        reason: str = "",
    ) -> AcceptedMessage:
        """Change an item by exactly one of: new content, a unified diff, or a reference."""
        return await self.send(ContextUpdate(key, reason, diff, content, ref))

    async def remove_context(self, key: str, reason: str = "") -> AcceptedMessage:
        """Remove an item; its key stays known as used."""
        return await self.send(ContextRemove(key, reason))

    async def share_secret(
        self,
        key: str,
        value: str,
        to: Iterable[str],
        *,
        expires_at: str | None = None,
        secret_type: SecretType | None = None,
    ) -> AcceptedMessage:
        """Send a secret to the named members as `secret.share`; the server never stores its value.

        A member that reconnects receives it again, with `ref` set to the id of the first message.
        """
        body = SecretShare(key, tuple(to), value, expires_at, secret_type)
        return await self.send(body)

    async def revoke_secret(self, key: str, reason: str) -> AcceptedMessage:
        """Withdraw a secret; the members it was shared with are notified."""
        return await self.send(SecretRevoke(key, reason))


def default_content_type(content: Content | None) -> ContentType:
    """The content type of an item whose author gave none."""
    if content is None:
        return "reference"
    return "text" if isinstance(content, str) else "structured"
