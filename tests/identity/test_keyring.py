"""Keys in a directory: one signs, earlier ones verify, others' changes are noticed."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from accord.core.kernel.refusal import Reason, Refused
from accord.identity.keyring import MTIME_RESOLUTION_NS, Keyring, KeyringError

DATA = b"what was said"

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / "keys"


def files(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def active(ring: Keyring) -> str:
    (signs,) = (key.kid for key in ring.public_keys() if key.active)
    assert ring.active == signs
    return signs


def rest(place: Path) -> None:
    """As if nothing had changed for a while, so that a stamp can be trusted."""
    before = place.stat().st_mtime_ns - 2 * MTIME_RESOLUTION_NS
    os.utime(place, ns=(before, before))


@posix
def test_the_first_key_is_made_at_once_and_is_the_owners_alone(place: Path) -> None:
    ring = Keyring.open(place)

    (key,) = ring.public_keys()
    assert files(place) == [f"{key.kid}.pem", f"{key.kid}.pub"]
    assert [mode(place), *(mode(file) for file in place.iterdir())] == [0o700, 0o600, 0o600]


@posix
def test_a_wide_umask_makes_no_wide_files(place: Path) -> None:
    before = os.umask(0)
    try:
        Keyring.open(place)
    finally:
        os.umask(before)

    assert {mode(file) for file in (place, *place.iterdir())} == {0o700, 0o600}


def test_what_was_signed_is_verified_and_nothing_else(place: Path) -> None:
    ring = Keyring.open(place)

    kid, signature = ring.sign(DATA)

    assert ring.verify(kid, DATA, signature)
    assert not ring.verify(kid, DATA + b"!", signature)
    assert not ring.verify(kid, DATA, signature[:-1])
    assert not ring.verify("unknown", DATA, signature)
    assert not ring.verify("../" + kid, DATA, signature)


def test_the_public_half_is_exported_as_pem(place: Path) -> None:
    ring = Keyring.open(place)
    kid, signature = ring.sign(DATA)

    key = serialization.load_pem_public_key(ring.public_keys()[0].public.encode())

    assert isinstance(key, Ed25519PublicKey)
    key.verify(signature, DATA)
    assert ring.public_keys()[0].public == (place / f"{kid}.pub").read_text("ascii")


def test_a_key_knows_when_it_was_made(place: Path) -> None:
    (key,) = Keyring.open(place, lambda: 1_750_000_000_123).public_keys()

    assert key.created_at == 1_750_000_000_123


def test_the_same_keys_are_there_after_a_restart(place: Path) -> None:
    kid, signature = Keyring.open(place).sign(DATA)

    again = Keyring.open(place)

    assert active(again) == kid
    assert again.verify(kid, DATA, signature)


def test_after_a_rotation_the_new_key_signs_and_the_old_one_verifies(place: Path) -> None:
    ring = Keyring.open(place)
    old, signature = ring.sign(DATA)

    made = ring.rotate()

    assert ring.sign(DATA)[0] == made.kid == active(ring)
    assert ring.verify(old, DATA, signature)
    assert [key.kid for key in ring.public_keys()] == [old, made.kid]


def test_a_retired_key_cannot_sign_any_more(place: Path) -> None:
    ring = Keyring.open(place)
    old = active(ring)

    new = ring.rotate().kid

    assert files(place) == sorted([f"{old}.pub", f"{new}.pem", f"{new}.pub"])


def test_a_younger_key_follows_even_when_the_clock_goes_back(place: Path) -> None:
    times = iter([2_000, 1_000, 500])
    ring = Keyring.open(place, lambda: next(times))

    kids = [active(ring), ring.rotate().kid, ring.rotate().kid]

    assert kids == sorted(kids)
    assert active(ring) == kids[-1]


def test_what_a_forgotten_key_signed_stops_counting(place: Path) -> None:
    ring = Keyring.open(place)
    old, signature = ring.sign(DATA)
    ring.rotate()

    ring.forget(old)

    assert not ring.verify(old, DATA, signature)
    assert old not in {key.kid for key in ring.public_keys()}


def test_the_key_that_signs_is_not_forgotten(place: Path) -> None:
    ring = Keyring.open(place)

    with pytest.raises(Refused) as no:
        ring.forget(active(ring))

    assert no.value.reason is Reason.WRONG_STATE


def test_a_key_that_is_not_there_cannot_be_forgotten(place: Path) -> None:
    with pytest.raises(Refused) as no:
        Keyring.open(place).forget("../../etc")

    assert no.value.reason is Reason.NOT_FOUND


@pytest.mark.parametrize("settle", [rest, lambda _: None], ids=["at rest", "just changed"])
def test_a_server_notices_what_another_process_rotates_and_forgets(
    place: Path, settle: Callable[[Path], None]
) -> None:
    server = Keyring.open(place)
    old, signature = server.sign(DATA)
    settle(place)
    assert server.verify(old, DATA, signature)

    shell = Keyring.open(place)
    new = shell.rotate().kid
    assert server.verify(*swap(shell.sign(DATA)))
    assert server.sign(DATA)[0] == new
    assert server.verify(old, DATA, signature)

    settle(place)
    assert server.verify(old, DATA, signature)
    shell.forget(old)
    assert not server.verify(old, DATA, signature)


def swap(signed: tuple[str, bytes]) -> tuple[str, bytes, bytes]:
    kid, signature = signed
    return kid, DATA, signature


def test_a_directory_at_rest_is_not_read_again(place: Path) -> None:
    ring = Keyring.open(place)
    rest(place)
    ring.public_keys()
    view = ring._view

    ring.sign(DATA)

    assert ring._view is view


def test_many_who_open_and_rotate_at_once_agree_in_the_end(place: Path) -> None:
    signed: list[tuple[str, bytes]] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        ring = Keyring.open(place)
        ring.rotate()
        signed.append(ring.sign(DATA))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    ring = Keyring.open(place)
    assert len(signed) == 8
    assert all(ring.verify(kid, DATA, signature) for kid, signature in signed)
    assert active(ring) == max(key.kid for key in ring.public_keys())


def test_a_directory_out_of_reach_changes_nothing_of_what_was_read(place: Path) -> None:
    ring = Keyring.open(place)
    kid, signature = ring.sign(DATA)

    place.rename(place.with_name("away"))

    assert ring.verify(kid, DATA, signature)
    assert not ring.verify("unknown", DATA, signature)


def test_without_its_private_half_a_ring_gets_a_new_key(place: Path) -> None:
    ring = Keyring.open(place)
    old, signature = ring.sign(DATA)
    (place / f"{old}.pem").unlink()

    with pytest.raises(KeyringError, match="accord keys rotate"):
        ring.sign(DATA)
    again = Keyring.open(place)

    assert active(again) != old
    assert again.verify(old, DATA, signature)


@posix
@pytest.mark.parametrize("loose", [0o750, 0o705, 0o777])
def test_a_directory_that_others_can_enter_is_refused(place: Path, loose: int) -> None:
    Keyring.open(place)
    place.chmod(loose)

    with pytest.raises(KeyringError, match=f"chmod 700 {place}"):
        Keyring.open(place)


@posix
@pytest.mark.parametrize("kind", ["pem", "pub"])
@pytest.mark.parametrize("loose", [0o640, 0o602])
def test_a_file_that_others_can_reach_is_refused(place: Path, kind: str, loose: int) -> None:
    Keyring.open(place)
    (file,) = place.glob(f"*.{kind}")
    file.chmod(loose)

    with pytest.raises(KeyringError, match=f"chmod 600 {file}"):
        Keyring.open(place)


@pytest.mark.parametrize("kind", ["pem", "pub"])
def test_a_file_that_holds_no_key_is_refused(place: Path, kind: str) -> None:
    Keyring.open(place)
    (file,) = place.glob(f"*.{kind}")
    file.write_text("-----BEGIN NOTHING-----")

    with pytest.raises(KeyringError, match="not an Ed25519 key"):
        Keyring.open(place)


def test_a_key_of_another_kind_is_refused(place: Path) -> None:
    Keyring.open(place)
    (file,) = place.glob("*.pub")
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    file.write_bytes(
        other.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )

    with pytest.raises(KeyringError, match="not an Ed25519 key"):
        Keyring.open(place)


def test_to_a_running_server_a_broken_file_is_as_good_as_none(place: Path) -> None:
    server = Keyring.open(place)
    kid, signature = server.sign(DATA)
    broken = "0" * 26
    for kind in ("pub", "pem"):
        file = place / f"{broken}.{kind}"
        file.touch(0o600)

    assert not server.verify(broken, DATA, signature)
    assert server.verify(kid, DATA, signature)


def test_other_files_in_the_directory_are_left_alone(place: Path) -> None:
    ring = Keyring.open(place)
    notes = place / "notes.pub"
    notes.write_text("mine")

    ring.rotate()

    assert notes.read_text() == "mine"
    assert len(Keyring.open(place).public_keys()) == 2


def test_nothing_half_written_is_left_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Keyring.open(place)
    before = files(place)

    def full(_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        ring.rotate()

    assert files(place) == before
