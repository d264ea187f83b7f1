"""A certificate authority for tests, and TLS servers that use it."""

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.helpers.servers.server_process import ServerProcess, run_server

DAY = timedelta(days=1)
AUTHORITY_NAME = "An authority for tests"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class CertificateFiles(NamedTuple):
    """The files of a certificate and its key."""

    cert: Path
    key: Path

    @property
    def server_flags(self) -> tuple[str, ...]:
        """The flags of `accord serve` for this certificate."""
        return "--tls-cert", str(self.cert), "--tls-key", str(self.key)


class CertificateAuthority:
    """Issues certificates with any names and validity."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509_name(AUTHORITY_NAME)
        now = datetime.now(UTC)
        builder = self._certificate_builder(AUTHORITY_NAME, self.key, now - DAY, now + DAY)
        key_usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(key_usage, critical=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _certificate_builder(
        self, name: str, key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509_name(name))
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(until)
        )

    def issue_certificate(
        self,
        name: str = "server",
        names: tuple[str, ...] = LOCAL_NAMES,
        *,
        since: timedelta = -DAY,
        until: timedelta = DAY,
        passphrase: bytes = b"",
    ) -> CertificateFiles:
        """A certificate for these names, valid from now + `since` to now + `until`."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        builder = self._certificate_builder(name, key, now + since, now + until)
        builder = builder.add_extension(
            x509.SubjectAlternativeName(map(subject_alt_name, names)), critical=False
        )
        files = CertificateFiles(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        files.cert.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
        encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        with os.fdopen(os.open(files.key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
        return files

    def hashed_directory(self) -> Path:
        """A directory in which OpenSSL finds the authority by the hash of its name."""
        text = AUTHORITY_NAME.lower().encode()
        # The canonical form: one set of one pair of the identifier and the text, as UTF-8.
        pair = _der(0x30, b"\x06\x03\x55\x04\x03" + _der(0x0C, text))
        digest = sha1(_der(0x31, pair), usedforsecurity=False).digest()
        directory = self.folder / "hashed"
        directory.mkdir(exist_ok=True)
        name = f"{int.from_bytes(digest[:4], 'little'):08x}.0"
        (directory / name).write_bytes(self.file.read_bytes())
        return directory


def _der(tag: int, content: bytes) -> bytes:
    """A value in DER, shorter than 128 bytes."""
    return bytes([tag, len(content)]) + content


def x509_name(name: str) -> x509.Name:
    """A distinguished name with this common name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def subject_alt_name(name: str) -> x509.GeneralName:
    """A subject alternative name: an IP address or a host name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@contextmanager
def trust_authority(authority: CertificateAuthority) -> Iterator[None]:
    """Make this process, and processes it starts, trust only this authority."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority.file))
        yield


@contextmanager
def run_tls_server(
    folder: Path, *flags: str, names: tuple[str, ...] = LOCAL_NAMES
) -> Iterator[ServerProcess]:
    """Run a TLS server whose certificate this process trusts."""
    authority = CertificateAuthority(folder / "authority")
    more = authority.issue_certificate(names=names).server_flags
    with trust_authority(authority), run_server(folder, "token", *more, *flags) as running:
        yield running
