"""One hook file in the hooks directory: its state, inserting our block, and removing it again."""

import os
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Reason, Refused
from accord.git.hooks import hook_script
from accord.git.hooks.hook_script import EARLIER_FOLDER, FORMER_MARKER

FORMER_SUFFIX = ".before-accord"
# What hook managers rename a hook to that they replace: pre-commit runs it, lefthook does not.
RENAMED_SUFFIXES = (".legacy", ".old")
EXECUTABLE = 0o755
EXECUTE_BITS = 0o111


class HookFile(NamedTuple):
    """State of one hook file: ours (possibly with an earlier hook), foreign, or absent.

    A tracked file belongs to the repository's content, so it is never changed.
    """

    name: str
    path: Path
    is_ours: bool
    is_current: bool
    is_chained: bool
    is_foreign: bool
    is_tracked: bool = False


def read_hook(directory: Path, name: str, *, is_tracked: bool = False) -> HookFile:
    path = directory / name
    exists = path.is_file() or path.is_symlink()
    content = _read(path)
    script = hook_script.parse(content)
    is_former = FORMER_MARKER.encode() in content
    is_ours = script is not None or is_former
    moved = _moved(path).exists() or _moved(path).is_symlink()
    is_chained = (
        path.with_name(name + FORMER_SUFFIX).exists()
        if is_former
        else moved or (script is not None and script.earlier is not None)
    )
    is_current = script is not None and content == _rendered(name, script.earlier)
    return HookFile(name, path, is_ours, is_current, is_chained, exists and not is_ours, is_tracked)


def write_hook(hook: HookFile) -> None:
    """Insert our block, or update it; the earlier hook is never without its text for a moment."""
    if hook.is_current or hook.is_tracked:
        return
    if hook.is_ours:
        remove_hook(hook)
    elif hook.is_foreign:
        _remove_from_renamed(hook.path)
    content = _read(hook.path)
    if content and _can_hold_block(hook.path, content):
        mode = hook.path.stat().st_mode & 0o777
        _replace(hook.path, hook_script.render_around(hook.name, content), mode)
        return
    if hook.path.exists() or hook.path.is_symlink():
        _move_aside(hook.path)
    _replace(hook.path, hook_script.render_alone(hook.name), EXECUTABLE)


def remove_hook(hook: HookFile) -> None:
    """Restore the earlier hook to the byte, or remove the file if there was none."""
    script = hook_script.parse(_read(hook.path))
    former = hook.path.with_name(hook.name + FORMER_SUFFIX)
    if script is None:
        if former.exists():
            former.replace(hook.path)
        else:
            hook.path.unlink()
    elif script.earlier is not None:
        _replace(hook.path, script.earlier, hook.path.stat().st_mode & 0o777)
    elif not _move_back(hook.path):
        hook.path.unlink()


def _rendered(name: str, earlier: bytes | None) -> bytes:
    if earlier is None:
        return hook_script.render_alone(name)
    return hook_script.render_around(name, earlier)


def _can_hold_block(path: Path, content: bytes) -> bool:
    """Whether it is a shell script that git runs; git ignores a file that is not executable."""
    is_run = bool(path.stat().st_mode & EXECUTE_BITS)
    return is_run and not path.is_symlink() and hook_script.is_shell_script(content)


def _remove_from_renamed(path: Path) -> None:
    """Take our block out of a file that a hook manager renamed, so that we do not run twice."""
    for suffix in RENAMED_SUFFIXES:
        renamed = path.with_name(path.name + suffix)
        script = hook_script.parse(_read(renamed))
        if script is None:
            continue
        if script.earlier is None:
            renamed.unlink()
        else:
            _replace(renamed, script.earlier, renamed.stat().st_mode & 0o777)


def _moved(path: Path) -> Path:
    return path.parent / EARLIER_FOLDER / path.name


def _move_aside(path: Path) -> None:
    moved = _moved(path)
    if moved.exists() or moved.is_symlink():
        detail = (
            f"{path} was not written by Accord, but {EARLIER_FOLDER}/{path.name} exists as well; "
            "remove one of the two and try again"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    moved.parent.mkdir(exist_ok=True)
    if path.is_symlink() and not (target := str(path.readlink())).startswith("/"):
        moved.symlink_to(f"../{target}")
        path.unlink()
    else:
        path.rename(moved)


def _move_back(path: Path) -> bool:
    """Whether there was a moved hook, which is then in its old place again."""
    moved = _moved(path)
    if moved.is_symlink() and (target := str(moved.readlink())).startswith("../"):
        path.unlink()
        path.symlink_to(target.removeprefix("../"))
        moved.unlink()
    elif moved.exists():
        moved.replace(path)
    else:
        return False
    if not any(moved.parent.iterdir()):
        moved.parent.rmdir()
    return True


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _replace(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(mode)
    temporary.replace(path)
