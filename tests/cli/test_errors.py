"""How a command that failed ends: one sentence that says what to do, and a code that fits."""

import errno
import os
from pathlib import Path

import pytest

from accord.atomic_files import write_private
from accord.cli.errors import REASON_BY_ERRNO, classify_error
from accord.client.errors import ServerRefused
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.refusal import Reason
from accord.data_dir import DATABASE_NAME
from accord.engine.ports import UnknownStoreError
from accord.operations.backup import PartFile
from tests.helpers.clients.cli import run_accord
from tests.helpers.clients.unprivileged_cli import run_accord_unprivileged
from tests.helpers.stores.sample_log import build_log


@pytest.mark.parametrize(
    ("number", "code"),
    [
        *((errno.EACCES, 3), (errno.EPERM, 3), (errno.ENOENT, 4), (errno.ENOTDIR, 2)),
        *((errno.ENOSPC, 6), (errno.EDQUOT, 6), (errno.EROFS, 6), (errno.EMFILE, 6)),
        (errno.EBADF, 1),
    ],
)
def test_what_the_system_refuses_has_its_code_and_what_to_do(number: int, code: int) -> None:
    why, said = classify_error(OSError(number, os.strerror(number), "/x/y"))

    assert ERROR_CODES[why].exit == code
    assert said.startswith(f"/x/y: {os.strerror(number)}")
    assert (number in REASON_BY_ERRNO) == ("; " in said)


def test_what_was_removed_is_not_found_with_a_server_as_without() -> None:
    gone = ServerRefused("INVALID_STATE", "It was removed", details={"after": 7})
    over = ServerRefused("INVALID_STATE", "The gate is closed")

    assert (classify_error(gone)[0], classify_error(over)[0]) == (
        Reason.REMOVED,
        Reason.WRONG_STATE,
    )


def test_a_store_that_is_none_is_bad_input() -> None:
    assert classify_error(UnknownStoreError("no"))[0] is Reason.MALFORMED


def test_what_cannot_be_written_is_named_as_people_know_it(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "file"

    with pytest.raises(FileNotFoundError) as ready:
        write_private(file, b"")
    with pytest.raises(FileNotFoundError) as backup:
        PartFile(file)

    assert (ready.value.filename, backup.value.filename) == (str(file), str(file))


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_a_damaged_log_is_named_and_not_its_half_made_copy(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await build_log(home)
    whole = bytearray((home / DATABASE_NAME).read_bytes())
    whole[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    (home / DATABASE_NAME).write_bytes(whole)

    ran = run_accord("backup", str(tmp_path / "copy"), "--data-dir", str(home))

    assert ran.code == 5
    assert f"{home / DATABASE_NAME} is damaged" in ran.err
    assert ".part" not in ran.err
    assert names(tmp_path) == ["home"]


async def test_a_backup_that_was_cut_off_is_named_with_what_to_do(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    await build_log(home)
    assert run_accord("backup", str(copy), "--data-dir", str(home)).code == 0
    copy.write_bytes(copy.read_bytes()[: 4096 * 5])

    ran = run_accord("restore", str(copy), "--data-dir", str(tmp_path / "new"))

    assert ran.code == 5
    assert f"accord: {copy} is damaged" in ran.err
    assert ran.err.endswith("and was not changed; name another file\n")


def test_a_closed_folder_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0)

    ran = run_accord_unprivileged("verify", "--data-dir", str(tmp_path / "home"))

    assert ran.code == 3
    assert "Permission denied; run this as its owner, or change its permissions" in ran.err


def test_a_backup_that_is_not_there_makes_no_directory(tmp_path: Path) -> None:
    ran = run_accord("restore", str(tmp_path / "none"), "--data-dir", str(tmp_path / "new"))

    assert ran == (4, "", f"accord: There is no backup {tmp_path / 'none'}; check the name\n")
    assert not (tmp_path / "new").exists()
