"""Secret values: in memory, until they are revoked, expire, or the process ends."""


class Vault:
    """Values by stream and key. Nothing here is ever written, shown or encoded."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], str] = {}

    def stash(self, stream: str, key: str, value: str) -> None:
        """Hold a value, instead of an older one."""
        self._values[stream, key] = value

    def value(self, stream: str, key: str) -> str | None:
        """The value, if it is held."""
        return self._values.get((stream, key))

    def values(self, stream: str) -> list[str]:
        """All that is held for a stream, for the filter that keeps it from being told."""
        return [value for (where, _), value in self._values.items() if where == stream]

    def forget(self, stream: str, key: str) -> None:
        """Let it go."""
        self._values.pop((stream, key), None)

    def __repr__(self) -> str:
        return f"Vault({len(self._values)} values)"
