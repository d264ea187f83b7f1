"""Detecting that records between a reader's cursor and the next record were removed."""

from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused


def ensure_no_gap(id: str, record: Record, version: int, seq: int) -> None:
    """Refuse if records between the cursor (`version`, `seq`) and this record were removed.

    `after` in the details of the refusal is the cursor from which reading is possible again.
    """
    number_follows = 0 < record.seq <= seq + 1
    if record.version == version + 1 or number_follows:
        return
    after = (record.seq or record.version) - 1
    detail = f"Older messages of {id} were removed by retention; read on after number {after}"
    raise Refused(Reason.REMOVED, detail, {"after": after})
