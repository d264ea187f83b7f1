"""Proof for a stranger: what the log has of a commit, signed with the server's key."""

import re
from typing import Protocol

from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import REPO, SHA
from accord.core.provenance.statement import Signature, payload, pre_authentication, seal

from .reading import Reader, Source


class Signer(Protocol):
    """The key that signs."""

    def sign(self, data: bytes) -> tuple[str, bytes]:
        """Its id, and its signature of the data."""
        ...


async def attested(source: Source, signer: Signer, repo: str, sha: str) -> str:
    """A signed statement about a commit; only what is on record is ever signed."""
    if not (re.fullmatch(REPO, repo) and re.fullmatch(SHA, sha)):
        raise Refused(Why.MALFORMED, "A repository has an id, and a commit its full one")
    link = await Reader(source).link(repo, sha)
    if link is None:
        detail = (
            f"The log links no decision to {sha}; where it was rebased or squashed, ask for the "
            "commit that `accord why` calls the first"
        )
        raise Refused(Why.UNKNOWN, detail)
    body = payload(sha, [link.decision])
    return seal(body, [Signature(*signer.sign(pre_authentication(body)))])
