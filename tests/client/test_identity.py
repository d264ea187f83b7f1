"""Where the server is and who is speaking."""

import base64
import json

import pytest

from accord.client import Client
from accord.client.identity import address, identity, read
from accord.core.kernel.authority import Kind, Role


def token(**claims: object) -> str:
    """Something that looks like a token; the signature is nobody's."""
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
def test_any_form_of_the_address_will_do(url: str, base: str, websocket: str) -> None:
    assert address(url).base == base
    assert address(url).websocket("r") == websocket


@pytest.mark.parametrize("url", ["h:1", "ftp://h", "http://", "", "/ws"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="An address begins with"):
        Client(url, id="alice")


def test_names_in_an_address_are_quoted() -> None:
    assert (
        address("http://h").http("sessions", "a/b?c", after=3)
        == "http://h/sessions/a%2Fb%3Fc?after=3"
    )


def test_a_token_says_who_speaks() -> None:
    said = token(agent_id="claude", kind="agent", roles=["driver", "navigator"], name="Claude")

    who = identity(said, None, None)

    assert (who.id, who.kind, who.name) == ("claude", "agent", "Claude")
    assert who.roles == (Role.DRIVER, Role.NAVIGATOR)


def test_on_trust_one_says_it_oneself() -> None:
    who = identity(None, "alice", Kind.HUMAN)

    assert (who.id, who.kind, who.name, who.roles) == ("alice", "human", "alice", (Role.DRIVER,))


@pytest.mark.parametrize("said", [None, "", "x", "a.b", "a.!.c", token(iss="somebody")])
def test_somebody_has_to_speak(said: str | None) -> None:
    with pytest.raises(ValueError, match="Say who you are"):
        identity(said, None, None)


def test_claims_of_others_are_not_read() -> None:
    assert read("a.bm90IGpzb24.c") is None


def test_each_client_is_a_runtime_of_its_own() -> None:
    one, two = Client("http://h", id="alice"), Client("http://h", id="alice")

    assert one.runtime != two.runtime
    assert Client("http://h", id="alice", runtime="desk").runtime == "desk"
