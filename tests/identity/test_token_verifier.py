"""A token whose signature was checked before is still checked for everything that can change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.identity import token_signing
from accord.identity.token_signing import Keyring, TokenVerifier
from tests.identity.token_forgery import T0, issued


@pytest.fixture
def ring(tmp_path: Path) -> Keyring:
    return Keyring.open(tmp_path / "keys")


def reason(verify: Callable[[], object]) -> Reason:
    with pytest.raises(Refused) as refused:
        verify()
    return refused.value.reason


def test_the_signature_is_checked_once(ring: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    real = token_signing.verify_token

    def counted(
        token: str, now: Instant, keyring: Keyring, revoked: set[str]
    ) -> token_signing.Identity:
        checked.append(token)
        return real(token, now, keyring, revoked)

    monkeypatch.setattr(token_signing, "verify_token", counted)
    verifier, made = TokenVerifier(ring), issued(ring)
    first = verifier.verify(made.token, T0, set())
    assert verifier.verify(made.token, T0, set()) is first
    assert checked == [made.token]


def test_revocation_expiry_and_a_removed_key_count_at_once(ring: Keyring) -> None:
    verifier, made = TokenVerifier(ring), issued(ring)
    verifier.verify(made.token, T0, set())
    gone = Reason.UNAUTHENTICATED
    assert reason(lambda: verifier.verify(made.token, T0, {made.claims.jti})) is gone
    late = made.claims.exp * 1000 + 60_000
    assert reason(lambda: verifier.verify(made.token, late, set())) is gone
    verifier.verify(made.token, T0, set())
    ring.rotate()
    verifier.verify(made.token, T0, set())
    ring.forget(made.key)
    assert reason(lambda: verifier.verify(made.token, T0, set())) is gone


def test_a_forged_token_is_never_remembered(ring: Keyring) -> None:
    verifier, made = TokenVerifier(ring), issued(ring)
    verifier.verify(made.token, T0, set())
    head, body, signature = made.token.split(".")
    other = "A" if signature[0] != "A" else "B"
    forged = f"{head}.{body}.{other}{signature[1:]}"
    for _ in range(2):
        assert reason(lambda: verifier.verify(forged, T0, set())) is Reason.UNAUTHENTICATED


def test_only_so_many_tokens_are_remembered(ring: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_signing, "MAX_VERIFIED_TOKENS", 2)
    verifier = TokenVerifier(ring)
    for _ in range(4):
        verifier.verify(issued(ring).token, T0, set())
    assert len(verifier._verified) == 2
