"""Reading on, where the beginning may have been removed."""

from accord.core.kernel.log import Record
from accord.core.kernel.refusal import Refused, Why


def ensure_next(id: str, record: Record, version: int, heard: int) -> None:
    """Refuse if something was removed between where a reader stands and this record.

    The reader has come to `version` and to number `heard`; `after` in the refusal says where there
    is something again.
    """
    number_follows = 0 < record.seq <= heard + 1
    if record.version == version + 1 or number_follows:
        return
    after = (record.seq or record.version) - 1
    detail = f"What was said in {id} was removed by retention; there is more after number {after}"
    raise Refused(Why.REMOVED, detail, {"after": after})
