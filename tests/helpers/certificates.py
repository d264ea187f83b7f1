"""An authority of a test's own, and what it signs."""

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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

from tests.helpers.server import ServerProcess, a_server

DAY = timedelta(days=1)
HERE = ("localhost", "127.0.0.1", "::1")


class Files(NamedTuple):
    """A certificate and its key."""

    cert: Path
    key: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """How a server is told of them."""
        return "--tls-cert", str(self.cert), "--tls-key", str(self.key)


class Authority:
    """Signs whatever it is asked to."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = called("An authority for tests")
        now = datetime.now(UTC)
        made = self._begun("An authority for tests", self.key, now - DAY, now + DAY)
        everything = x509.KeyUsage(
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
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(everything, critical=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _begun(
        self, name: str, key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(called(name))
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(until)
        )

    def signed(
        self,
        name: str = "server",
        names: tuple[str, ...] = HERE,
        *,
        since: timedelta = -DAY,
        until: timedelta = DAY,
        passphrase: bytes = b"",
    ) -> Files:
        """A certificate for these names, good from now + `since` to now + `until`."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        made = self._begun(name, key, now + since, now + until)
        made = made.add_extension(x509.SubjectAlternativeName(map(alias, names)), critical=False)
        files = Files(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        files.cert.write_bytes(made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))
        locked = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        with os.fdopen(os.open(files.key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        return files


def called(name: str) -> x509.Name:
    """A name as certificates have it."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def alias(name: str) -> x509.GeneralName:
    """One of the names a certificate is for."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@contextmanager
def trusting(authority: Authority) -> Iterator[None]:
    """Every client of this process, and those it starts, trusts it and nobody else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority.file))
        yield


@contextmanager
def a_tls_server(
    folder: Path, *flags: str, names: tuple[str, ...] = HERE
) -> Iterator[ServerProcess]:
    """A server that speaks TLS, trusted by this process."""
    authority = Authority(folder / "authority")
    more = authority.signed(names=names).flags
    with trusting(authority), a_server(folder, "token", *more, *flags) as running:
        yield running
