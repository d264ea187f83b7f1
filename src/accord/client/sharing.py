"""What members share: context on the shelf, and secrets that are kept nowhere."""

from collections.abc import Iterable
from typing import Any, Literal

from accord.core.room.secrets import SecretRevoke, SecretShare
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import ContentRef

from .outbox import Accepted
from .voice import Voice

Content = str | dict[str, Any]
ContentType = Literal["text", "file", "reference", "structured", "image", "audio_transcript"]
SecretType = Literal["api_key", "database_url", "token", "credential", "other"]


class Sharing(Voice):
    """Context and secrets."""

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
    ) -> Accepted:
        """Put something before everybody, or before those named; again replaces one's own."""
        body = ContextAdd(
            key=key,
            content_type=content_type or usual_type(content),
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
    ) -> Accepted:
        """Change it: by new content, by a unified diff of it, or by a reference; one of these."""
        return await self.send(ContextUpdate(key, reason, diff, content, ref))

    async def remove_context(self, key: str, reason: str = "") -> Accepted:
        """Take it away."""
        return await self.send(ContextRemove(key, reason))

    async def share_secret(
        self,
        key: str,
        value: str,
        to: Iterable[str],
        *,
        expires_at: str | None = None,
        secret_type: SecretType | None = None,
    ) -> Accepted:
        """Let these have it, who hear it as `secret.share`; the server writes it down nowhere.

        Whoever comes back hears it again, with `ref` naming the first time.
        """
        body = SecretShare(key, tuple(to), value, expires_at, secret_type)
        return await self.send(body)

    async def revoke_secret(self, key: str, reason: str) -> Accepted:
        """Make it worthless here; who had it is told."""
        return await self.send(SecretRevoke(key, reason))


def usual_type(content: Content | None) -> ContentType:
    """What content is, where nobody says."""
    if content is None:
        return "reference"
    return "text" if isinstance(content, str) else "structured"
