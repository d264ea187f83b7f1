"""`accord git export` and `accord git verify`: a commit's decision, for a stranger."""

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from accord.core.provenance.statement import Envelope, Statement
    from accord.desk import Office
    from accord.git.repository import Repository


KID = re.compile(r"[0-9A-Z]{26}")
BROKEN = 5
WRONG = "the signature is wrong: the file was changed, or another key signed it; it proves nothing"


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Which commit, and where to put it."""
    parser.add_argument("commit", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: stdout)")
    parser.add_argument("--url", help="the server to ask (default: ACCORD_URL)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="sign with the keys in DIR, without a server"
    )


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Which file, and whose key."""
    parser.add_argument("file", help="what `accord git export` wrote, or -")
    parser.add_argument("--key", metavar="FILE", help="the server's public key, as PEM")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="look for the key in DIR (default: ACCORD_HOME)",
    )


def export(repo: "Repository", args: argparse.Namespace) -> int:
    """Write a signed statement about a commit."""
    from accord.cli import office
    from accord.core.kernel.refusal import Refused, Why
    from accord.git import naming

    sha = naming.commit(repo, args.commit)
    if not (id := repo.maybe("config", "accord.repo")):
        raise Refused(Why.UNKNOWN, "This repository has no id; `accord git install` gives it one")

    made: list[str] = []

    async def work(place: "Office") -> None:
        made.append(await place.attest(id.strip(), sha))

    code = office.run(args, work)
    if args.output and args.output != "-":
        Path(args.output).write_text(made[0], "utf-8")
    else:
        print(made[0], end="")
    return code


def verify(repo: "Repository | None", args: argparse.Namespace) -> int:
    """Check a statement without a server, and say what it proves."""
    from accord.core.provenance.statement import meaning, read, unseal
    from accord.show.output import tell
    from accord.show.text import line

    del repo
    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    envelope = unseal(raw.decode("utf-8", "replace"))
    signer = signed_by(envelope, args)
    if signer is None:
        print(f"accord: {WRONG}", file=sys.stderr)
        return BROKEN
    found: Statement = read(envelope.payload)
    if args.json:
        made = [each.id for each in found.decisions]
        tell({"commit": found.commit, "decisions": made, "key": signer})
    else:
        print(line(meaning(found, signer)))
    return 0


def signed_by(envelope: "Envelope", args: argparse.Namespace) -> str | None:
    """The name of a key that we have and that signed this; None when no signature of it holds.

    As DSSE has it: one signature that holds is enough, `keyid` is nothing but a hint.
    """
    from cryptography.exceptions import InvalidSignature

    tried = False
    for each in envelope.signatures:
        if (found := known(each.keyid, args)) is None:
            continue
        tried = True
        try:
            found.key.verify(each.sig, envelope.claim)
        except InvalidSignature:
            continue
        return found.name
    if not tried:
        from accord.core.kernel.refusal import Refused, Why

        names = ", ".join(each.keyid[:40] for each in envelope.signatures)
        raise Refused(Why.UNKNOWN, f"No key {names} here; name it with --key FILE")
    return None


class Known(NamedTuple):
    """A key that is trusted here, by a name that no stranger's file gives it."""

    name: str
    key: "Ed25519PublicKey"


def known(kid: str, args: argparse.Namespace) -> Known | None:
    """The public key of this id: the one that was named, or one of this machine's."""
    from accord.settings import Settings

    if args.key:
        pem = Path(args.key).read_bytes()
        return Known(fingerprint(loaded(pem)), loaded(pem))
    if not KID.fullmatch(kid):  # what a stranger's file says is no path
        return None
    file = Settings.here(home=args.data_dir).home / "keys" / f"{kid}.pub"
    return Known(kid, loaded(file.read_bytes())) if file.is_file() else None


def loaded(pem: bytes) -> "Ed25519PublicKey":
    """The key in a file; refused where it holds none."""
    from accord.core.kernel.refusal import Refused, Why
    from accord.desk import public_key

    if (key := public_key(pem)) is None:
        raise Refused(Why.MALFORMED, "The key is no Ed25519 public key in PEM")
    return key


def fingerprint(key: "Ed25519PublicKey") -> str:
    """By its own bytes, as `openssl pkey -pubin -outform DER | sha256sum` tells."""
    from hashlib import sha256

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    whole = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{sha256(whole).hexdigest()}"
