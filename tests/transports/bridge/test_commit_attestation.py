"""Proof for a stranger: a statement that a server signs, checked without one."""

import argparse
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from accord.cli.git.attestation import verify
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance import attestation as statements
from accord.core.provenance.attestation import Signature
from tests.core.provenance.decision_samples import DECISION
from tests.helpers.clients.bridge_client import REPO_ID
from tests.helpers.servers.server_process import ServerProcess
from tests.transports.bridge.test_handlers import A, B, at_work, change_to, writes


async def a_statement(server: ServerProcess, folder: Path) -> Path:
    """A commit that was linked, and what the server says of it."""
    work = await at_work(server)
    await work.tool(await work.prompt(), **writes("login.py", "x\n"))
    await work.ask("commit-created", sha=A, changes=[change_to("login.py", "x\n")])
    await work.leave()
    told = server.admin_request("GET", f"/admin/repos/{REPO_ID}/commits/{A}/statement")
    file = folder / "proof.json"
    file.write_text(json.dumps(told), "utf-8")
    return file


def checked(file: Path, home: Path, key: Path | None = None) -> int:
    args = argparse.Namespace(file=str(file), key=key, data_dir=home, json=False)
    return verify(None, args)


async def test_a_statement_is_checked_without_a_server_and_says_what_it_proves(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = await a_statement(server, tmp_path)
    public = next((server.home / "keys").glob("*.pub"))
    server.stop()

    by_home = checked(file, server.home)
    said = capsys.readouterr().out
    by_key = checked(file, tmp_path / "nowhere", public)

    assert (by_home, by_key) == (0, 0)
    assert said.count("\n") == 1
    assert A in said
    assert "approved by human:bob" in said
    assert "does not prove" in said
    payload = json.loads(base64.b64decode(json.loads(file.read_text())["payload"]))
    (decision,) = payload["predicate"]["decisions"]
    assert decision["position"]["stream"].startswith("room/")
    assert decision["approvals"][0]["by"] == "human:bob"


# Without a server

KID = "01M7GMJP1Y4T7CP7A3QNGAT9X2"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
BODY = statements.statement_payload(A, [DECISION])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine that has the key."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / f"{KID}.pub").write_bytes(pem(KEY))
    return tmp_path


def pem(key: Ed25519PrivateKey) -> bytes:
    form = PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(Encoding.PEM, form)


def sealed(body: bytes = BODY) -> str:
    return statements.format_envelope(
        body, [Signature(KID, KEY.sign(pae(statements.PAYLOAD_TYPE, body)))]
    )


def pae(kind: str, body: bytes) -> bytes:
    """The pre-authentication encoding, from the words of DSSE's protocol and nothing of ours.

    The text `DSSEv1`, then type and body, each behind its length in ASCII decimal, all parts
    with one space between them.
    """
    name = kind.encode("utf-8")
    parts = [b"DSSEv1"]
    for each in (name, body):
        parts += [str(len(each)).encode("ascii"), each]
    return b" ".join(parts)


def proves_nothing(text: str | bytes, home: Path, key: Path | None = None) -> bool:
    """Whether it is refused, one way or the other."""
    file = home / "proof.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    try:
        return checked(file, home, key) == 5
    except Refused as no:
        return no.reason in {Reason.MALFORMED, Reason.NOT_FOUND}


@pytest.mark.parametrize("mask", [0x01, 0x04, 0x20, 0x80])
def test_no_byte_of_the_file_can_be_changed_unnoticed(
    home: Path, mask: int, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = sealed().encode().strip()
    assert not proves_nothing(whole, home)
    capsys.readouterr()

    unnoticed = [
        place
        for place in range(len(whole))
        if not proves_nothing(
            bytes(byte ^ mask if at == place else byte for at, byte in enumerate(whole)), home
        )
    ]

    assert [whole[place : place + 1] for place in unnoticed] == []
    assert capsys.readouterr().out == ""


def test_no_byte_of_what_is_signed_can_be_changed_unnoticed(home: Path) -> None:
    whole = json.loads(sealed())
    for place in range(len(BODY)):
        changed = bytearray(BODY)
        changed[place] ^= 1
        text = json.dumps(whole | {"payload": base64.b64encode(changed).decode()})
        assert checked_text(text, home) == 5, place


def checked_text(text: str, home: Path) -> int:
    (home / "proof.json").write_text(text, "utf-8")
    return checked(home / "proof.json", home)


def altered(value: Any) -> Iterator[Any]:
    """The value with one thing in it changed, taken away or put in, wherever there is one."""
    match value:
        case dict():
            yield {**value, "more": 1}
            for name in value:
                yield {each: value[each] for each in value if each != name}
                yield from ({**value, name: other} for other in altered(value[name]))
        case list():
            yield [*value, 1]
            for place, each in enumerate(value):
                yield value[:place] + value[place + 1 :]
                yield from ([*value[:place], other, *value[place + 1 :]] for other in altered(each))
        case str():
            yield value + "x"
            yield ""
        case int() | float():
            yield value + 1
        case _:
            yield not value


def test_no_field_of_what_is_signed_can_be_changed_unnoticed(home: Path) -> None:
    whole, told = json.loads(sealed()), json.loads(BODY)
    versions = [version for version in altered(told) if version != told]
    assert len(versions) > 60
    for version in versions:
        body = base64.b64encode(json.dumps(version).encode()).decode()
        assert checked_text(json.dumps(whole | {"payload": body}), home) == 5, version


def test_no_field_of_the_envelope_can_be_changed_unnoticed(home: Path) -> None:
    whole = json.loads(sealed())
    harmless = (
        whole | {"more": 1},
        whole | {"signatures": [whole["signatures"][0] | {"more": 1}]},
    )

    for version in altered(whole):
        assert proves_nothing(json.dumps(version), home) == (version not in harmless), version


def test_invalid_statement_file_is_named(home: Path) -> None:
    file = home / "poem.txt"
    file.write_text("Two of us said yes\n", "utf-8")

    with pytest.raises(Refused, match=r"poem\.txt was not written by `accord git export`") as no:
        checked(file, home)

    assert no.value.reason is Reason.MALFORMED


def test_what_dsse_itself_says_is_signed_is_what_we_sign(home: Path) -> None:
    envelope = json.loads(sealed())
    body = base64.b64decode(envelope["payload"])
    signed = base64.b64decode(envelope["signatures"][0]["sig"])

    KEY.public_key().verify(signed, pae(envelope["payloadType"], body))
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert json.loads(body)["_type"] == "https://in-toto.io/Statement/v1"
    assert statements.pre_authentication_encoding(body) == pae(envelope["payloadType"], body)


def test_an_envelope_of_another_tool_is_checked_as_dsse_says(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Either alphabet, no keyid, somebody else's signature beside ours: one that holds will do."""
    kind = "application/vnd.in-toto+json"
    other = Ed25519PrivateKey.generate()
    encode = base64.urlsafe_b64encode
    envelope = {
        "payload": encode(BODY).decode(),
        "payloadType": kind,
        "signatures": [
            {"keyid": "another", "sig": encode(other.sign(pae(kind, BODY))).decode()},
            {"sig": encode(KEY.sign(pae(kind, BODY))).decode()},
        ],
    }
    (tmp_path / "key.pem").write_bytes(pem(KEY))
    (tmp_path / "stranger.pem").write_bytes(pem(Ed25519PrivateKey.generate()))
    text = json.dumps(envelope)

    assert not proves_nothing(text, home, tmp_path / "key.pem")
    assert "recorded dec_" in capsys.readouterr().out
    assert proves_nothing(text, home, tmp_path / "stranger.pem")
    assert "it proves nothing" in capsys.readouterr().err


def test_a_key_is_called_by_its_own_bytes_and_not_as_the_file_says(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(sealed())
    told["signatures"][0]["keyid"] = "the key of somebody famous"

    assert not proves_nothing(json.dumps(told), home, home / "keys" / f"{KID}.pub")
    said = capsys.readouterr().out
    assert "famous" not in said
    assert "The server with the key sha256:" in said


async def test_a_key_that_nobody_has_proves_nothing(server: ServerProcess, tmp_path: Path) -> None:
    file = await a_statement(server, tmp_path)
    whole = json.loads(file.read_text())
    for kid in ("0" * 26, "../../keys", ""):
        file.write_text(
            json.dumps(whole | {"signatures": [whole["signatures"][0] | {"keyid": kid}]})
        )
        with pytest.raises(Refused) as no:
            checked(file, server.home)
        assert no.value.reason is Reason.NOT_FOUND


async def test_a_commit_made_in_another_clone_is_signed_too(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Clones have ids of their own; the statement names the commit, not the repository."""
    file = await a_statement(server, tmp_path)
    told = server.admin_request("GET", f"/admin/repos/clone-of-bob/commits/{A}/statement")

    assert told["payload"] == json.loads(file.read_text("utf-8"))["payload"]


async def test_only_what_is_on_record_is_signed_and_only_for_operators(
    server: ServerProcess, tmp_path: Path
) -> None:
    await a_statement(server, tmp_path)

    for path, status in ((f"{REPO_ID}/commits/{B}", 404), (f"{REPO_ID}/commits/HEAD", 400)):
        with pytest.raises(HTTPError) as no:
            server.admin_request("GET", f"/admin/repos/{path}/statement")
        no.value.close()
        assert no.value.code == status
