"""Proof for a stranger: a statement that a server signs, checked without one."""

import argparse
import base64
import json
from pathlib import Path
from urllib.error import HTTPError

import pytest

from accord.cli.proof import verify
from accord.core.kernel.refusal import Refused, Why
from tests.helpers.bridge import REPO
from tests.helpers.server import ServerProcess
from tests.transports.test_bridge import A, B, at_work


async def a_statement(server: ServerProcess, folder: Path) -> Path:
    """A commit that was linked, and what the server says of it."""
    work = await at_work(server)
    await work.tool(await work.prompt())
    await work.ask("commit-created", sha=A)
    await work.leave()
    told = server.admin("GET", f"/admin/repos/{REPO}/commits/{A}/statement")
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


async def test_no_byte_of_it_can_be_changed_unnoticed(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = await a_statement(server, tmp_path)
    whole = json.loads(file.read_text())
    payload = base64.b64decode(whole["payload"])
    for place in range(0, len(payload), 7):
        changed = bytearray(payload)
        changed[place] ^= 1
        file.write_text(json.dumps(whole | {"payload": base64.b64encode(changed).decode()}))
        assert checked(file, server.home) == 5
    sig = bytearray(base64.b64decode(whole["signatures"][0]["sig"]))
    sig[10] ^= 1
    forged = [whole["signatures"][0] | {"sig": base64.b64encode(sig).decode()}]
    file.write_text(json.dumps(whole | {"signatures": forged}))

    assert checked(file, server.home) == 5
    assert "the signature is wrong" in capsys.readouterr().err


async def test_a_key_that_nobody_has_proves_nothing(server: ServerProcess, tmp_path: Path) -> None:
    file = await a_statement(server, tmp_path)
    whole = json.loads(file.read_text())
    for kid in ("0" * 26, "../../keys", ""):
        file.write_text(
            json.dumps(whole | {"signatures": [whole["signatures"][0] | {"keyid": kid}]})
        )
        with pytest.raises(Refused) as no:
            checked(file, server.home)
        assert no.value.why is Why.UNKNOWN


async def test_only_what_is_on_record_is_signed_and_only_for_operators(
    server: ServerProcess, tmp_path: Path
) -> None:
    await a_statement(server, tmp_path)

    for path, status in ((f"{REPO}/commits/{B}", 404), (f"{REPO}/commits/HEAD", 400)):
        with pytest.raises(HTTPError) as no:
            server.admin("GET", f"/admin/repos/{path}/statement")
        no.value.close()
        assert no.value.code == status
