"""A server's certificate and key: good ones are taken, and of the rest each is told what to do."""

import re
import shutil
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from accord.config import choose
from accord.config.certificate import LARGEST_FILE, prepared
from accord.core.kernel.refusal import Refused, Why
from tests.helpers.certificates import DAY, Authority, Files
from tests.helpers.cli import accord


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def refusal(files: Files, now: datetime | None = None) -> str:
    """Why they will not do."""
    with pytest.raises(Refused) as no:
        prepared(*files, now)
    assert no.value.why is Why.MALFORMED
    return no.value.detail


def test_good_ones_make_tls_of_a_version_that_is_sound(authority: Authority) -> None:
    context, _ = prepared(*authority.signed())

    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_the_certificate_counts_by_the_clock(authority: Authority) -> None:
    files, now = authority.signed(), datetime.now(UTC)

    assert f"{files.cert} expired on " in refusal(files, now + 2 * DAY)
    assert refusal(files, now + 2 * DAY).endswith("; renew it")
    assert "is good from " in refusal(files, now - 2 * DAY)
    assert "check this machine's clock" in refusal(files, now - 2 * DAY)


def test_what_cannot_be_read_is_named(authority: Authority, tmp_path: Path) -> None:
    files, none = authority.signed(), tmp_path / "none.pem"

    for setting, given in (
        ("tls_cert", files._replace(cert=none)),
        ("tls_key", Files(files.cert, none)),
    ):
        said = f"{setting}: {none} cannot be read: No such file or directory; name a PEM file"
        assert refusal(given) == said
    assert "tls_cert: " in refusal(files._replace(cert=tmp_path))


@pytest.mark.parametrize("text", [b"", b"hello", b"\0" * 100, b"x" * (LARGEST_FILE + 1)])
def test_what_is_no_certificate_or_no_key_is_told_so(authority: Authority, text: bytes) -> None:
    files = authority.signed()
    odd = Files(authority.folder / "odd.pem", authority.folder / "odd.key")
    for each in odd:
        each.write_bytes(text)
        each.chmod(0o600)

    assert refusal(files._replace(cert=odd.cert)).startswith(
        f"tls_cert: {odd.cert} is no certificate"
    )
    assert refusal(files._replace(key=odd.key)).startswith(f"tls_key: {odd.key} is no private key")


def test_the_two_belong_together(authority: Authority) -> None:
    one, other = authority.signed("one"), authority.signed("other")

    said = f"tls_key: {other.key} is not the key of {one.cert}; name the two that belong together"
    assert refusal(Files(one.cert, other.key)) == said


def test_nobody_is_asked_for_a_passphrase(authority: Authority) -> None:
    files = authority.signed(passphrase=b"correct horse")

    assert refusal(files).endswith("name a PEM file with an unencrypted key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_can_reach_is_refused(authority: Authority, mode: int) -> None:
    files = authority.signed()
    files.key.chmod(mode)

    assert refusal(files) == f"tls_key: others may read {files.key}; run: chmod 600 {files.key}"


@pytest.mark.parametrize("name", ["tls_cert", "tls_key"])
def test_one_needs_the_other(name: str) -> None:
    found = choose({name: Path("a.pem")}, {}, Path("/nonexistent"))

    other = {"tls_cert": "tls_key", "tls_key": "tls_cert"}[name]
    said = f"{name} is set and {other} is not; TLS needs both, plain HTTP neither"
    assert found.wrong == [said]
    assert found.config.tls is None


def test_a_server_that_cannot_speak_it_does_not_start(authority: Authority, tmp_path: Path) -> None:
    old = authority.signed("old", since=-2 * DAY, until=-DAY)
    home = ("--data-dir", str(tmp_path / "data"), "--port", "0")

    ran = accord("serve", *home, *old.flags)
    half = accord("serve", *home, *old.flags[:2])

    assert (ran.code, half.code) == (2, 2)
    assert re.search(r"tls_cert: \S+old\.pem expired on .*; renew it", ran.err)
    assert "tls_cert is set and tls_key is not" in half.err
    assert not (tmp_path / "data" / "accord.db").exists()


def test_the_doctor_explains(authority: Authority, tmp_path: Path) -> None:
    good = authority.signed("good", until=timedelta(days=90, hours=1))
    soon, open_ = authority.signed("soon"), authority.signed("open")
    open_.key.chmod(0o644)
    home = tmp_path / "data"
    home.mkdir(mode=0o700)

    def told(files: Files) -> tuple[str, str, str]:
        text = f'port = 1\ntls_cert = "{files.cert}"\ntls_key = "{files.key}"\n'
        (home / "accord.toml").write_text(text)
        ran = accord("doctor", "--json", "--data-dir", str(home))
        (found,) = (each for each in ran.json["checks"] if each["about"] == "TLS")
        server = next(each for each in ran.json["checks"] if each["about"] == "server")
        assert "port 1 " in server["says"]
        return found["state"], found["says"], found["cure"]

    assert told(good) == ("ok", f"{good.cert} is good for 90 d more", "")
    state, said, cure = told(soon)
    assert (state, cure) == ("warn", "Renew it; a running server takes the new one by itself.")
    assert said.startswith(f"{soon.cert} is good for 23 h")
    state, said, cure = told(open_)
    assert (state, cure) == ("fail", "Correct it, or set neither tls_cert nor tls_key.")
    assert f"chmod 600 {open_.key}" in said


def test_by_every_way_a_setting_is_said(authority: Authority, tmp_path: Path) -> None:
    files = authority.signed()
    shutil.copy(files.cert, tmp_path / "c.pem")
    env = {"ACCORD_TLS_CERT": str(tmp_path / "c.pem"), "ACCORD_TLS_KEY": str(files.key)}

    assert choose({}, env, Path("/nonexistent")).usable().tls == (tmp_path / "c.pem", files.key)
