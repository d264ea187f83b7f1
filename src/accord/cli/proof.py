"""`accord git export` and `accord git verify`: a commit's decision, for a stranger."""

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.show.text import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from accord.core.provenance.statement import Envelope, Statement
    from accord.desk import Office
    from accord.git.repository import Repository


KID = re.compile(r"[0-9A-Z]{26}")
BROKEN = 5
SHORT = 10
MOST_COVERED = 50
OPERATOR = (
    "Only an operator can have a proof signed: put an operator's token into ACCORD_TOKEN "
    "(`accord serve` prints one when it starts), or on the server's own machine say "
    "`accord git export {commit} --data-dir DIR`"
)
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
    """Write a signed statement about a commit, or about each of those that it came of."""
    from accord.cli import office
    from accord.core.kernel.refusal import Refused, Why
    from accord.git import naming

    sha = naming.commit(repo, args.commit)
    if not (id := repo.maybe("config", "accord.repo")):
        raise Refused(Why.UNKNOWN, "This repository has no id; `accord git install` gives it one")
    made: dict[str, str] = {}

    async def work(place: "Office") -> None:
        made.update(await attested(place, id.strip(), sha, lambda: came_of(repo, sha)))

    try:
        code = office.run(args, work, makes=False)
    except Refused as no:
        if no.why in {Why.UNAUTHENTICATED, Why.FORBIDDEN}:
            raise Refused(no.why, OPERATOR.format(commit=args.commit)) from None
        raise
    if sha not in made:
        others = listed(each[:SHORT] for each in made)
        said = f"the log does not have {sha[:SHORT]} itself; the proof is of what it came of"
        print(f"accord: {said}: {others}", file=sys.stderr)
    text = next(iter(made.values())) if len(made) == 1 else "".join(map(on_one_line, made.values()))
    if args.output and args.output != "-":
        Path(args.output).write_text(text, "utf-8")
    else:
        print(text, end="")
    return code


async def attested(
    place: "Office", repo: str, sha: str, others: "Callable[[], Iterable[tuple[str, ...]]]"
) -> dict[str, str]:
    """By commit: its own statement or, where the log has none, one for each that it came of."""
    from accord.core.kernel.refusal import Refused, Why

    if (own := await statement(place, repo, sha)) is not None:
        return {sha: own}
    found: dict[str, str] = {}
    for names in others():
        for name in names:
            if name in found or (told := await statement(place, repo, name)) is None:
                continue
            found[name] = told
            break
    if not found:
        detail = (
            f"The server's log has no decision of {sha[:SHORT]}, nor of a commit that it came of; "
            f"`accord why {sha[:SHORT]}` tells what git has"
        )
        raise Refused(Why.UNKNOWN, detail)
    return found


async def statement(place: "Office", repo: str, sha: str) -> str | None:
    """What is signed about a commit; None where the log knows nothing of it."""
    from accord.core.kernel.refusal import Refused, Why

    try:
        return await place.attest(repo, sha)
    except Refused as no:
        if no.why in {Why.UNKNOWN, Why.NO_ROOM}:  # one code over HTTP
            return None
        raise


def came_of(repo: "Repository", sha: str) -> "list[tuple[str, ...]]":
    """The commits of its decisions, found as `accord why` finds them; the newest name first."""
    from accord.core.provenance.record import decisions_of
    from accord.git.why import reason

    made = decisions_of(reason(repo, sha).record)[:MOST_COVERED]
    return [tuple(filter(None, (each.git_sha, each.first_sha))) for each in made]


def on_one_line(envelope: str) -> str:
    """As in-toto puts several into one file."""
    import json

    return json.dumps(json.loads(envelope), sort_keys=True) + "\n"


def verify(repo: "Repository | None", args: argparse.Namespace) -> int:
    """Check statements without a server, and say what each proves."""
    from accord.core.kernel.refusal import Refused
    from accord.core.provenance.statement import meaning, read, unsealed
    from accord.show.output import tell
    from accord.show.text import line

    del repo
    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    try:
        envelopes = unsealed(raw.decode("utf-8", "replace"))
    except Refused as no:
        detail = f"{line(args.file)} is no file that `accord git export` wrote ({no.detail})"
        raise Refused(no.why, detail) from None
    signers = [signed_by(each, args) for each in envelopes]
    if not all(signers):
        print(f"accord: {WRONG}", file=sys.stderr)
        return BROKEN
    for envelope, signer in zip(envelopes, signers, strict=True):
        found: Statement = read(envelope.payload)
        if args.json:
            made = [each.id for each in found.decisions]
            tell({"commit": found.commit, "decisions": made, "key": signer})
        else:
            print(line(meaning(found, str(signer))))
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
    from accord.home import KEYS
    from accord.settings import Settings

    if args.key:
        pem = Path(args.key).read_bytes()
        return Known(fingerprint(loaded(pem)), loaded(pem))
    if not KID.fullmatch(kid):  # what a stranger's file says is no path
        return None
    file = Settings.here(home=args.data_dir).home / KEYS / f"{kid}.pub"
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
