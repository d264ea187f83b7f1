"""The newest signed policy of a connection's repository, as the server has it."""

import msgspec

from accord.client.http_client import FIRST_ERROR_STATUS, HttpClient
from accord.core.policy.policy_toml import NO_POLICY, Policy, PolicyError, digest_of, parse_policy
from accord.hosts.connections import Connection

NOT_FOUND = 404


class SignedText(msgspec.Struct, frozen=True):
    """A policy's text, and the digest of what was signed."""

    digest: str
    text: str


def read_signed_policy(http: HttpClient, connection: Connection) -> Policy:
    """The policy; the absent one if none counts for this repository. Raises ClientError."""
    if not connection.repository:
        return NO_POLICY
    response = http.send("GET", ("policies", connection.repository))
    if response.status == NOT_FOUND:
        return NO_POLICY
    if response.status >= FIRST_ERROR_STATUS:
        raise http.error_of(response)
    signed = http.decode(response.body, SignedText)
    if digest_of(signed.text) != signed.digest:
        return NO_POLICY
    try:
        return parse_policy(signed.text)
    except PolicyError:
        return NO_POLICY
