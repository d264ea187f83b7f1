"""Whatever comes as a token: an actor, or a refusal, and nothing worse."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.identity.token_signing import Keyring
from tests.identity.token_forgery import check, claims, encoded, forged, refusal


@given(st.data())
def test_one_flipped_bit_anywhere_is_refused(
    ring: Keyring, token: str, data: st.DataObject
) -> None:
    letters = bytearray(token.encode())
    place = data.draw(st.integers(0, len(letters) - 1))
    letters[place] ^= 1 << data.draw(st.integers(0, 7))

    assert refusal(ring, letters.decode("latin-1"))


@given(st.data())
def test_one_other_byte_anywhere_is_refused(ring: Keyring, token: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda letter: letter != token[place]))

    assert refusal(ring, token[:place] + other + token[place + 1 :])


@given(st.text() | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*"))
@example("\x00")
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_arbitrary_text_is_refused_and_nothing_worse(ring: Keyring, text: str) -> None:
    assert refusal(ring, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c"]), JSON))
def test_arbitrary_headers_are_refused_and_nothing_worse(
    ring: Keyring, header: dict[str, Any]
) -> None:
    text = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims()).encode())}"

    assert refusal(ring, f"{text}.{encoded(bytes(64))}")


@given(st.dictionaries(st.sampled_from([*claims(), "labels", "capabilities", "name"]), JSON))
def test_arbitrary_claims_are_an_actor_or_refused(ring: Keyring, changes: dict[str, Any]) -> None:
    token = forged(ring, claims(**changes))

    assert kind_of(ring, token) in {Kind.HUMAN, Kind.AGENT, Reason.UNAUTHENTICATED}


def kind_of(ring: Keyring, token: str) -> Kind | Reason:
    try:
        return check(ring, token).actor.kind
    except Refused as no:
        return no.reason
