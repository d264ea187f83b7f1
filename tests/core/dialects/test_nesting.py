"""Which payloads can nest, and what counts as deep."""

from typing import Any, Literal

import pytest
from msgspec import Raw, Struct, inspect

from accord.core.dialects.nesting import MAX_NESTING_DEPTH, can_nest, is_too_deep
from accord.core.kernel.ballot import AllOf, Quorum
from accord.core.kernel.role_permissions import Role


class Leaf(Struct):
    name: str
    roles: tuple[Role, ...] = ()


class Branch(Struct):
    leaves: dict[str, Leaf] | None = None


class Tree(Struct):
    trees: tuple["Tree", ...] = ()


@pytest.mark.parametrize(
    "flat", [str, int, float, bool, None, Literal["a", "b"], Role, list[str], Leaf, Branch]
)
def test_what_has_a_last_level_does_not_nest(flat: Any) -> None:
    assert not can_nest(inspect.type_info(flat))


@pytest.mark.parametrize(
    "free",
    [Any, object, dict[str, Any], list[Any], frozenset[Any], int | list[Any], Tree, AllOf, Quorum],
)
def test_what_may_hold_anything_or_itself_nests(free: Any) -> None:
    assert can_nest(inspect.type_info(free))


@pytest.mark.parametrize("strange", [Raw, tuple[int, str]])
def test_what_nobody_thought_of_is_looked_at_to_be_safe(strange: Any) -> None:
    assert can_nest(inspect.type_info(strange))


def test_depth_is_counted_through_objects_lists_and_structs() -> None:
    value: Any = "bottom"
    for _ in range(MAX_NESTING_DEPTH // 3):
        value = Tree(trees=({"a": value},))  # type: ignore[arg-type]

    assert not is_too_deep(value)
    assert is_too_deep([[value]])


def test_many_siblings_do_not_count_as_depth() -> None:
    assert not is_too_deep([[]] * 10_000)
