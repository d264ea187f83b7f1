"""Feeding bytes already received to a protocol that reads into buffers of its own."""

from collections.abc import Callable


def fill_buffers(
    data: bytes, get_buffer: Callable[[int], memoryview], on_filled: Callable[[int], None]
) -> None:
    """Copy all of `data`.

    `get_buffer` returns the next buffer, `on_filled` gets the size copied.
    """
    while data:
        buffer = get_buffer(len(data))
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        data = data[size:]
        on_filled(size)
