"""SQLite's errors as sentences that help."""

import apsw
import msgspec

from accord.engine.ports import DamagedError, ForeignStoreError, StoreError
from accord.engine.proven import DO

# Changed bytes can make anything of a row: text that is none, a number where text was.
NONSENSE = (ValueError, TypeError, msgspec.MsgspecError)
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, *NONSENSE)
_HELP: tuple[tuple[type[Exception], str], ...] = (
    (apsw.FullError, "There is no room left for {path}; make room and try again"),
    (apsw.ReadOnlyError, "{path} may only be read; give yourself the right to write it"),
    (apsw.PermissionsError, "{path} may not be used; check the rights of file and folder"),
    (apsw.CantOpenError, "{path} cannot be opened; check the rights of file and folder"),
    (apsw.BusyError, "Another process kept {path} locked for too long; try again"),
    (apsw.LockedError, "Another process kept {path} locked for too long; try again"),
    *((kind, f"{{path}} is damaged; {DO}") for kind in _DAMAGE),
    (apsw.IOError, "The disk failed under {path}; check the disk and its cables"),
)


def store_error(path: str, error: BaseException) -> StoreError:
    """What went wrong, for a person, with SQLite's own words at the end."""
    help_ = next((text for kind, text in _HELP if isinstance(error, kind)), "{path} failed")
    kind = DamagedError if isinstance(error, _DAMAGE) else StoreError
    return kind(f"{help_.format(path=path)} ({error})", path)


def foreign(path: str, why: str) -> ForeignStoreError:
    """Why we leave this file alone."""
    return ForeignStoreError(f"{path} {why}; it was not touched")
