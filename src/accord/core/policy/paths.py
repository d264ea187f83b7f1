"""Paths as text: joining, `..` and containment, without looking at a disk."""

from collections.abc import Iterable

GLOB_CHARACTERS = frozenset("*?[")


def normalize(path: str, base: str = "/") -> str:
    """The absolute path without `.`, `..` and repeated slashes."""
    whole = path if path.startswith("/") else f"{base}/{path}"
    parts: list[str] = []
    for part in whole.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def expand_home(path: str, home: str) -> str:
    """The path with `~` replaced."""
    return f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path


def is_within(path: str, folder: str) -> bool:
    """Whether a normalized path is the folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def within_any(path: str, folders: Iterable[str]) -> bool:
    """Whether a normalized path is one of the folders or below one."""
    return any(is_within(path, folder) for folder in folders)


def fixed_part(path: str) -> str:
    """The path up to its first component with a glob character."""
    parts = path.split("/")
    fixed = next((n for n, part in enumerate(parts) if GLOB_CHARACTERS & {*part}), len(parts))
    return "/".join(parts[:fixed]) or ("/" if path.startswith("/") else ".")
