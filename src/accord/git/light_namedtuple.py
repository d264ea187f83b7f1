"""`typing.NamedTuple` without importing `typing`.

Importing `typing` takes longer than everything else a commit without a session needs. Type
checkers see the original.
"""

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Named(type):
        def __new__(cls, name: str, _bases: tuple[type, ...], body: dict[str, object]) -> type:
            """Build a named tuple with the fields, defaults and methods of the class body."""
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            tuple_class = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024
            for key, value in body.items():
                if key not in fields and key not in {"__module__", "__qualname__"}:
                    setattr(tuple_class, key, value)
            return tuple_class

    NamedTuple = type.__new__(_Named, "NamedTuple", (), {})

__all__ = ["NamedTuple"]
