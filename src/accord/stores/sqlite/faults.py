"""SQLite's errors as sentences that help."""

import apsw

from accord.engine.ports import ForeignStoreError, StoreError

_HELP: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.FullError, "There is no room left for {path}; make room and try again"),
    (apsw.ReadOnlyError, "{path} may only be read; give yourself the right to write it"),
    (apsw.PermissionsError, "{path} may not be used; check the rights of file and folder"),
    (apsw.CantOpenError, "{path} cannot be opened; check the rights of file and folder"),
    (apsw.BusyError, "Another process kept {path} locked for too long; try again"),
    (apsw.LockedError, "Another process kept {path} locked for too long; try again"),
    (
        apsw.CorruptError,
        "{path} is damaged; `accord doctor` tells more, `accord restore` brings a backup back",
    ),
    (apsw.NotADBError, "{path} is not a log of Accord"),
    (apsw.IOError, "The disk failed under {path}; check the disk and its cables"),
)
# Trying again later will not help.
_UNUSABLE = (apsw.CorruptError, apsw.NotADBError)


def store_error(path: str, error: BaseException) -> StoreError:
    """What went wrong, for a person, with SQLite's own words at the end."""
    help_ = next((text for kind, text in _HELP if isinstance(error, kind)), "{path} failed")
    kind = ForeignStoreError if isinstance(error, _UNUSABLE) else StoreError
    return kind(f"{help_.format(path=path)} ({error})")


def foreign(path: str, why: str) -> ForeignStoreError:
    """Why we leave this file alone."""
    return ForeignStoreError(f"{path} {why}; it was not touched")
