"""Server addresses and identities."""

import base64
import json

import pytest

from accord.client import Client
from accord.client.identity import parse_address, read_claims, resolve_identity
from accord.core.kernel.role_permissions import Kind, Role


def token(**claims: object) -> str:
    """A token with these claims and a meaningless signature."""
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.sig"


@pytest.mark.parametrize(
    ("url", "base", "websocket"),
    [
        ("http://h:1", "http://h:1", "ws://h:1/ws?runtime=r"),
        ("http://h:1/", "http://h:1", "ws://h:1/ws?runtime=r"),
        ("ws://h:1/ws", "http://h:1", "ws://h:1/ws?runtime=r"),
        ("wss://h", "https://h", "wss://h/ws?runtime=r"),
        ("https://h/accord/", "https://h/accord", "wss://h/accord/ws?runtime=r"),
        ("http://[::1]:7420", "http://[::1]:7420", "ws://[::1]:7420/ws?runtime=r"),
    ],
)
def test_parse_address_accepts_http_and_websocket_urls(url: str, base: str, websocket: str) -> None:
    assert parse_address(url).base_url == base
    assert parse_address(url).websocket_url("r") == websocket


@pytest.mark.parametrize("url", ["h:1", "ftp://h", "http://", "", "/ws"])
def test_parse_address_refuses_other_strings(url: str) -> None:
    with pytest.raises(ValueError, match="is not a server address"):
        Client(url, id="alice")


def test_http_url_quotes_path_and_query() -> None:
    assert (
        parse_address("http://h").http_url("sessions", "a/b?c", after=3)
        == "http://h/sessions/a%2Fb%3Fc?after=3"
    )


def test_identity_comes_from_the_token() -> None:
    message = token(agent_id="claude", kind="agent", roles=["driver", "navigator"], name="Claude")

    who = resolve_identity(message, None, None)

    assert (who.id, who.kind, who.name) == ("claude", "agent", "Claude")
    assert who.roles == (Role.DRIVER, Role.NAVIGATOR)


def test_identity_without_token_comes_from_the_id() -> None:
    who = resolve_identity(None, "alice", Kind.HUMAN)

    assert (who.id, who.kind, who.name, who.roles) == ("alice", "human", "alice", (Role.DRIVER,))


@pytest.mark.parametrize("bad_token", [None, "", "x", "a.b", "a.!.c", token(iss="somebody")])
def test_identity_needs_a_token_or_an_id(bad_token: str | None) -> None:
    with pytest.raises(ValueError, match="Give a token, or an id"):
        resolve_identity(bad_token, None, None)


def test_claims_of_foreign_tokens_are_none() -> None:
    assert read_claims("a.bm90IGpzb24.c") is None


def test_each_client_has_its_own_runtime_id() -> None:
    one, two = Client("http://h", id="alice"), Client("http://h", id="alice")

    assert one.runtime != two.runtime
    assert Client("http://h", id="alice", runtime="desk").runtime == "desk"
