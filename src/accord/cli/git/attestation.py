"""`accord git export` and `accord git verify`: signed statements about commits."""

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.cli.export_file import write_export_file
from accord.show.text import join_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from accord.core.provenance.attestation import DsseEnvelope, Statement
    from accord.git.repository import Repository
    from accord.identity.token_service import TokenAdmin


KEY_ID = re.compile(r"[0-9A-Z]{26}")
EXIT_BROKEN = 5
SHORT_SHA_LENGTH = 10
MAX_SOURCE_COMMITS = 50
OPERATOR_REQUIRED = (
    "Only an operator can export a signed statement: set ACCORD_TOKEN to an operator's token "
    "(`accord serve` prints one when it starts), or run on the server's machine: "
    "`accord git export {commit} --data-dir DIR`"
)
BAD_SIGNATURE = (
    "the signature is invalid: the file was changed or signed with another key; it proves nothing"
)

OTHER_CONTENT = (
    "the commit {commit} here does not have the content that was reported to the server, so its "
    "approvals prove nothing about it"
)


def export_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commit, the output file and the signer."""
    parser.add_argument("commit", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="file to write (default: standard output)"
    )
    parser.add_argument("--url", help="the server (default: ACCORD_URL)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="sign with the keys in DIR instead of a server"
    )


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and the key."""
    parser.add_argument(
        "file", help="a file that `accord git export` wrote, or - for standard input"
    )
    parser.add_argument("--key", metavar="FILE", help="the server's public key, as PEM")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="look for the key in DIR (default: ACCORD_HOME)",
    )


def export(repo: "Repository", args: argparse.Namespace) -> int:
    """Write a signed statement about a commit, or about the commits it was squashed from."""
    from accord.cli.admin import admin_api
    from accord.core.kernel.refusal import Reason, Refused
    from accord.git import user_arguments

    sha = user_arguments.resolve_commit(repo, args.commit)
    if not (id := repo.try_text("config", "accord.repo")):
        raise Refused(
            Reason.NOT_FOUND, "This repository has no id; `accord git install` gives it one"
        )
    statements: dict[str, str] = {}

    async def work(admin: "TokenAdmin") -> None:
        statements.update(
            await collect_statements(admin, id.strip(), sha, lambda: source_commits(repo, sha))
        )

    try:
        code = admin_api.run_admin(args, work, makes=False)
    except Refused as refusal:
        if refusal.reason in {Reason.UNAUTHENTICATED, Reason.FORBIDDEN}:
            raise Refused(refusal.reason, OPERATOR_REQUIRED.format(commit=args.commit)) from None
        raise
    if sha not in statements:
        sources = join_words(source[:SHORT_SHA_LENGTH] for source in statements)
        note = f"the log does not have {sha[:SHORT_SHA_LENGTH]} itself, but its source commits"
        print(f"accord: {note}: {sources}", file=sys.stderr)
    text = (
        next(iter(statements.values()))
        if len(statements) == 1
        else "".join(map(to_json_line, statements.values()))
    )
    if args.output and args.output != "-":
        write_export_file(Path(args.output), text)
    else:
        print(text, end="")
    return code


async def collect_statements(
    admin: "TokenAdmin", repo: str, sha: str, sources: "Callable[[], Iterable[tuple[str, ...]]]"
) -> dict[str, str]:
    """By commit: its own statement or, if the log has none, those of its source commits."""
    from accord.core.kernel.refusal import Reason, Refused

    if (own := await fetch_statement(admin, repo, sha)) is not None:
        return {sha: own}
    found: dict[str, str] = {}
    for names in sources():
        for name in names:
            if name in found or (other := await fetch_statement(admin, repo, name)) is None:
                continue
            found[name] = other
            break
    if not found:
        short = sha[:SHORT_SHA_LENGTH]
        detail = (
            f"The server's log has no decision for {short} or its source commits; "
            f"`accord why {short}` shows what git has"
        )
        raise Refused(Reason.NOT_FOUND, detail)
    return found


async def fetch_statement(admin: "TokenAdmin", repo: str, sha: str) -> str | None:
    """The signed statement about a commit; None if the log does not have it."""
    from accord.core.kernel.refusal import Reason, Refused

    try:
        return await admin.attest(repo, sha)
    except Refused as refusal:
        if refusal.reason in {Reason.NOT_FOUND, Reason.NO_ROOM}:  # the same code over HTTP
            return None
        raise


def source_commits(repo: "Repository", sha: str) -> "list[tuple[str, ...]]":
    """The commits of its decisions, as `accord why` finds them; the newest id of each first."""
    from accord.core.provenance.decision_commit import decisions_of
    from accord.git.why import explain_commit

    decisions = decisions_of(explain_commit(repo, sha).record)[:MAX_SOURCE_COMMITS]
    return [tuple(filter(None, (made.git_sha, made.first_sha))) for made in decisions]


def to_json_line(envelope: str) -> str:
    """One line of JSON: in-toto's format for several envelopes in one file."""
    import json

    return json.dumps(json.loads(envelope), sort_keys=True) + "\n"


def verify(repo: "Repository | None", args: argparse.Namespace) -> int:
    """Verify statements without a server, and print what each proves."""
    from accord.core.kernel.refusal import Refused
    from accord.core.provenance.attestation import (
        explain_statement,
        parse_envelopes,
        parse_statement,
    )
    from accord.show.output import print_json
    from accord.show.text import one_line

    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    try:
        envelopes = parse_envelopes(raw.decode("utf-8", "replace"))
    except Refused as refusal:
        problem = f"was not written by `accord git export` ({refusal.detail})"
        raise Refused(refusal.reason, f"{one_line(args.file)} {problem}") from None
    signers = [verify_envelope(envelope, args) for envelope in envelopes]
    if not all(signers):
        print(f"accord: {BAD_SIGNATURE}", file=sys.stderr)
        return EXIT_BROKEN
    code = 0
    for envelope, signer in zip(envelopes, signers, strict=True):
        found: Statement = parse_statement(envelope.payload)
        if repo is not None and not has_stated_content(repo, found):
            print(f"accord: {OTHER_CONTENT.format(commit=found.commit)}", file=sys.stderr)
            code = EXIT_BROKEN
        if args.json:
            ids = [decision.id for decision in found.decisions]
            print_json({"commit": found.commit, "decisions": ids, "key": signer})
        else:
            print(one_line(explain_statement(found, str(signer))))
    return code


def has_stated_content(repo: "Repository", statement: "Statement") -> bool:
    """Whether the commit changes what the statement says, as far as this repository has it.

    A server has no copy of the repository; it was told of the changes by the committer.
    """
    from accord.git import commit_content
    from accord.git.process import GitError
    from accord.git.records.decisions_ref import escape_invalid_utf8

    stated = [decision for decision in statement.decisions if decision.coverage]
    try:
        if not stated or not repo.resolve(statement.commit):
            return True
        files = commit_content.changes_of_commit(repo, repo.commit(statement.commit))
    except GitError:
        return True  # not a repository
    actual = {(escape_invalid_utf8(each.path), each.before, each.after) for each in files}
    return all(
        {(change.path, change.before, change.after) for change in decision.changes} == actual
        for decision in stated
    )


def verify_envelope(envelope: "DsseEnvelope", args: argparse.Namespace) -> str | None:
    """The name of the trusted key that signed the envelope; None if no signature is valid.

    By DSSE, one valid signature is enough, and `keyid` is only a hint.
    """
    from cryptography.exceptions import InvalidSignature

    tried = False
    for signature in envelope.signatures:
        if (trusted := trusted_key(signature.keyid, args)) is None:
            continue
        tried = True
        try:
            trusted.key.verify(signature.sig, envelope.signed_bytes)
        except InvalidSignature:
            continue
        return trusted.name
    if not tried:
        from accord.core.kernel.refusal import Reason, Refused

        names = ", ".join(signature.keyid[:40] for signature in envelope.signatures)
        detail = f"The key {names} is not known here; give its file with --key FILE"
        raise Refused(Reason.NOT_FOUND, detail)
    return None


class TrustedKey(NamedTuple):
    """A trusted key and its name, which never comes from the file being verified."""

    name: str
    key: "Ed25519PublicKey"


def trusted_key(kid: str, args: argparse.Namespace) -> TrustedKey | None:
    """The key given by --key, or the key with this id in the data directory."""
    from accord.data_dir import KEYS_DIR_NAME
    from accord.settings.client import Settings

    if args.key:
        pem = Path(args.key).read_bytes()
        return TrustedKey(fingerprint(load_public_key(pem)), load_public_key(pem))
    if not KEY_ID.fullmatch(kid):  # never use an untrusted id as a path
        return None
    file = Settings.for_process(home=args.data_dir).home / KEYS_DIR_NAME / f"{kid}.pub"
    return TrustedKey(kid, load_public_key(file.read_bytes())) if file.is_file() else None


def load_public_key(pem: bytes) -> "Ed25519PublicKey":
    """The key in a PEM file; refuses other files."""
    from accord.core.kernel.refusal import Reason, Refused
    from accord.identity.token_service import load_public_key

    if (key := load_public_key(pem)) is None:
        raise Refused(Reason.MALFORMED, "The key file is not an Ed25519 public key in PEM format")
    return key


def fingerprint(key: "Ed25519PublicKey") -> str:
    """The hash of the key, as `openssl pkey -pubin -outform DER | sha256sum` prints it."""
    from hashlib import sha256

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    whole = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{sha256(whole).hexdigest()}"
