"""A server's certificate and key: good ones are taken, and of the rest each is told what to do."""

import re
import shutil
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.settings.server import load_config
from accord.settings.server.certificate import MAX_PEM_BYTES, load_certificate
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.certificates import DAY, CertificateAuthority, CertificateFiles


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "authority")


def refusal(files: CertificateFiles, now: datetime | None = None) -> str:
    """Why they will not do."""
    with pytest.raises(Refused) as no:
        load_certificate(*files, now)
    assert no.value.reason is Reason.MALFORMED
    return no.value.detail


def test_good_ones_make_tls_of_a_version_that_is_sound(authority: CertificateAuthority) -> None:
    context, _ = load_certificate(*authority.issue_certificate())

    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_the_certificate_counts_by_the_clock(authority: CertificateAuthority) -> None:
    files, now = authority.issue_certificate(), datetime.now(UTC)

    assert f"{files.cert} expired on " in refusal(files, now + 2 * DAY)
    assert refusal(files, now + 2 * DAY).endswith("; renew it")
    assert "is not valid before " in refusal(files, now - 2 * DAY)
    assert "check this machine's clock" in refusal(files, now - 2 * DAY)


def test_what_cannot_be_read_is_named(authority: CertificateAuthority, tmp_path: Path) -> None:
    files, none = authority.issue_certificate(), tmp_path / "none.pem"

    for setting, given in (
        ("tls_cert", files._replace(cert=none)),
        ("tls_key", CertificateFiles(files.cert, none)),
    ):
        said = f"{setting}: {none} cannot be read: No such file or directory; use a PEM file"
        assert refusal(given) == said
    assert "tls_cert: " in refusal(files._replace(cert=tmp_path))


@pytest.mark.parametrize("text", [b"", b"hello", b"\0" * 100, b"x" * (MAX_PEM_BYTES + 1)])
def test_what_is_no_certificate_or_no_key_is_told_so(
    authority: CertificateAuthority, text: bytes
) -> None:
    files = authority.issue_certificate()
    odd = CertificateFiles(authority.folder / "odd.pem", authority.folder / "odd.key")
    for each in odd:
        each.write_bytes(text)
        each.chmod(0o600)

    assert refusal(files._replace(cert=odd.cert)).startswith(
        f"tls_cert: {odd.cert} is not a certificate"
    )
    assert refusal(files._replace(key=odd.key)).startswith(
        f"tls_key: {odd.key} is not a private key"
    )


def test_key_must_match_the_certificate(authority: CertificateAuthority) -> None:
    one, other = authority.issue_certificate("one"), authority.issue_certificate("other")

    expected = (
        f"tls_key: {other.key} does not match {one.cert}; "
        "use the key that belongs to the certificate"
    )
    assert refusal(CertificateFiles(one.cert, other.key)) == expected


def test_nobody_is_asked_for_a_passphrase(authority: CertificateAuthority) -> None:
    files = authority.issue_certificate(passphrase=b"correct horse")

    assert refusal(files).endswith("use a PEM file with an unencrypted key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_can_reach_is_refused(authority: CertificateAuthority, mode: int) -> None:
    files = authority.issue_certificate()
    files.key.chmod(mode)

    assert (
        refusal(files) == f"tls_key: other users can read {files.key}; run: chmod 600 {files.key}"
    )


@pytest.mark.parametrize("name", ["tls_cert", "tls_key"])
def test_tls_cert_and_tls_key_require_each_other(name: str) -> None:
    found = load_config({name: Path("a.pem")}, {}, Path("/nonexistent"))

    other = {"tls_cert": "tls_key", "tls_key": "tls_cert"}[name]
    said = f"{name} is set and {other} is not; TLS needs both, plain HTTP neither"
    assert found.problems == [said]
    assert found.config.tls is None


def test_a_server_that_cannot_speak_it_does_not_start(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    old = authority.issue_certificate("old", since=-2 * DAY, until=-DAY)
    home = ("--data-dir", str(tmp_path / "data"), "--port", "0")

    ran = run_accord("serve", *home, *old.server_flags)
    half = run_accord("serve", *home, *old.server_flags[:2])

    assert (ran.code, half.code) == (2, 2)
    assert re.search(r"tls_cert: \S+old\.pem expired on .*; renew it", ran.err)
    assert "tls_cert is set and tls_key is not" in half.err
    assert not (tmp_path / "data" / "accord.db").exists()


def test_doctor_explains_tls_problems(authority: CertificateAuthority, tmp_path: Path) -> None:
    good = authority.issue_certificate("good", until=timedelta(days=90, hours=1))
    soon, open_ = authority.issue_certificate("soon"), authority.issue_certificate("open")
    open_.key.chmod(0o644)
    home = tmp_path / "data"
    home.mkdir(mode=0o700)

    def told(files: CertificateFiles) -> tuple[str, str, str]:
        text = f'port = 1\ntls_cert = "{files.cert}"\ntls_key = "{files.key}"\n'
        (home / "accord.toml").write_text(text)
        ran = run_accord("doctor", "--json", "--data-dir", str(home))
        (found,) = (each for each in ran.json["checks"] if each["about"] == "TLS")
        server = next(each for each in ran.json["checks"] if each["about"] == "server")
        assert "port 1 " in server["found"]
        return found["state"], found["found"], found["fix"]

    assert told(good) == ("ok", f"{good.cert} is valid for 90 d more", "")
    state, said, cure = told(soon)
    assert (state, cure) == ("warn", "Renew it; a running server loads the new one automatically.")
    assert said.startswith(f"{soon.cert} is valid for 23 h")
    state, said, cure = told(open_)
    assert (state, cure) == ("fail", "Correct it, or remove both tls_cert and tls_key.")
    assert f"chmod 600 {open_.key}" in said


def test_tls_is_set_by_flag_environment_or_file(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    files = authority.issue_certificate()
    shutil.copy(files.cert, tmp_path / "c.pem")
    env = {"ACCORD_TLS_CERT": str(tmp_path / "c.pem"), "ACCORD_TLS_KEY": str(files.key)}

    assert load_config({}, env, Path("/nonexistent")).require_valid().tls == (
        tmp_path / "c.pem",
        files.key,
    )
