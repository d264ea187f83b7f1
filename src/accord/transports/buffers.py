"""Bytes that are here already, for a protocol that reads into buffers of its own."""

from collections.abc import Callable


def pour(data: bytes, room: Callable[[int], memoryview], filled: Callable[[int], None]) -> None:
    """Hand all of it over: `room` gives the next buffer, `filled` hears how much is in it."""
    while data:
        buffer = room(len(data))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        data = data[size:]
        filled(size)
