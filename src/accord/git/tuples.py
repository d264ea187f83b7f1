"""`NamedTuple` as `typing` has it, without `typing`.

That takes longer to import than all that a commit without a session needs. A type checker sees
`typing`'s own.
"""

TYPE_CHECKING = False  # a name that type checkers take for true
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Named(type):
        def __new__(cls, name: str, _bases: tuple[type, ...], body: dict[str, object]) -> type:
            """A tuple with the fields, defaults and methods of the body."""
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024
            for key, value in body.items():
                if key not in fields and key not in {"__module__", "__qualname__"}:
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Named, "NamedTuple", (), {})

__all__ = ["NamedTuple"]
