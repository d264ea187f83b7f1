"""The delivery marks of all threads and agents, in memory."""

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

from accord.core.attention.delivery_marks import DeliveryMarks, advanced

MAX_MARKS = 100_000

# Workspace, thread and agent.
MarkPlace = tuple[str, str, str]


class Marks:
    """The delivery marks of all threads and agents; the least recently moved are dropped."""

    def __init__(self) -> None:
        self._marks: OrderedDict[MarkPlace, DeliveryMarks] = OrderedDict()
        # Called with marks that moved, where other servers have to know.
        self.on_move: Callable[[MarkPlace], None] | None = None

    def at(self, place: MarkPlace) -> DeliveryMarks:
        """The marks at this place."""
        return self._marks.get(place, DeliveryMarks())

    def newest(self, most: int) -> list[MarkPlace]:
        """The places whose marks moved last."""
        return list(islice(reversed(self._marks), most))

    def merge(self, place: MarkPlace, marks: DeliveryMarks) -> None:
        """Another server has these marks."""
        known = self.at(place)
        self._store(
            place,
            DeliveryMarks(max(known.delivered, marks.delivered), max(known.seen, marks.seen)),
        )

    def of(self, workspace: str, thread_id: str, agent: str, acked: int) -> DeliveryMarks:
        """The marks, at least as far as the cursor."""
        marks = self._marks.get((workspace, thread_id, agent), DeliveryMarks())
        seen = max(acked, marks.seen)
        return DeliveryMarks(max(seen, marks.delivered), seen)

    def move(
        self,
        place: MarkPlace,
        marks: DeliveryMarks,
        after: int,
        up_to: int,
        *,
        seen: bool,
    ) -> None:
        """Messages behind `after` up to `up_to` were handed over, and read if `seen`."""
        delivered = advanced(marks.delivered, after, up_to)
        read = advanced(marks.seen, after, up_to) if seen else marks.seen
        self._store(place, DeliveryMarks(max(delivered, read), read))
        if self.on_move is not None:
            self.on_move(place)

    def _store(self, place: MarkPlace, marks: DeliveryMarks) -> None:
        self._marks[place] = marks
        self._marks.move_to_end(place)
        if len(self._marks) > MAX_MARKS:
            self._marks.popitem(last=False)
