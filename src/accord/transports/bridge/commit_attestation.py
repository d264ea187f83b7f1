"""Signed statements about commits, for verification without access to the server."""

import re
from typing import Protocol

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.attestation import (
    Signature,
    format_envelope,
    pre_authentication_encoding,
    statement_payload,
)
from accord.core.provenance.commit_links import REPO_PATTERN, SHA_PATTERN
from accord.transports.bridge.queries import BridgeQueries, LogSource


class Signer(Protocol):
    """A signing key."""

    def sign(self, data: bytes) -> tuple[str, bytes]:
        """The key's id and the signature of the data."""
        ...


async def attest_commit(source: LogSource, signer: Signer, repo: str, sha: str) -> str:
    """A signed statement about a commit, made only from what the log records."""
    if not (re.fullmatch(REPO_PATTERN, repo) and re.fullmatch(SHA_PATTERN, sha)):
        raise Refused(Reason.MALFORMED, "Give a repository id and a full commit id")
    links = await BridgeQueries(source).links_of_commit(repo, sha)
    if not links:
        detail = (
            f"The log links no decision to {sha}; after a rebase or squash, ask for the original "
            "commit that `accord why` shows"
        )
        raise Refused(Reason.NOT_FOUND, detail)
    body = statement_payload(sha, [links[0].link.decision])
    return format_envelope(body, [Signature(*signer.sign(pre_authentication_encoding(body)))])
