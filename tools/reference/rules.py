"""Who may do what, when a gate passes, and how a refusal is said."""

from collections.abc import Iterator
from typing import get_args

from msgspec import Struct, inspect

from accord.core.dialects.codes import CODES
from accord.core.kernel.authority import RIGHTS, Capability, Kind, May, Role, verbs
from accord.core.kernel.ballot import DEEPEST, MOST_RULES, Quorum
from accord.core.room.naming import TRUE_CATEGORY
from accord.core.room.permissions import PERMISSIONS
from accord.core.room.state import Category, Risk
from tools.reference.markdown import code, codes, plain, table
from tools.reference.shapes import fields, in_words, promise
from tools.reference.words import words

YES, NO = "yes", "–"
INSIDE = (Kind.HUMAN, Kind.AGENT)


def roles_with(verb: May, kind: Kind) -> list[Role]:
    """The roles that give a member of this kind the verb."""
    return [role for role in Role if verb in verbs(kind, frozenset({role}), frozenset())]


def holders(verb: May) -> str:
    """Who has a right, in words."""
    if verb is May.SERVE:
        return "the server alone"
    if verb is May.ENTER:
        return "whoever the server has let in"
    people, agents = (roles_with(verb, kind) for kind in INSIDE)
    if len(people) == len(Role):
        return "every member"
    if people == agents:
        return codes(people)
    return f"agents as {codes(agents)}"


def rights() -> Iterator[str]:
    """Roles and the rights they give."""
    heads = ("Role", *(code(each.value) for each in Capability))
    rows = (
        (code(role.value), *(YES if each in given else NO for each in Capability))
        for role, given in RIGHTS.items()
    )
    yield from table(heads, rows)


def matrix() -> Iterator[str]:
    """Roles and verbs; a verb that only agents have says so."""
    said = words("verbs", [verb.value for verb in May])
    heads = ("Verb", *(code(role.value) for role in Role), "Meaning")
    rows = ((verb.value, *_cells(verb), said[verb.value]) for verb in May)
    yield from table(heads, rows)


def _cells(verb: May) -> Iterator[str]:
    people, agents = (roles_with(verb, kind) for kind in INSIDE)
    for role in Role:
        if role in people:
            yield YES
        else:
            yield "agents" if role in agents else NO


def needs() -> Iterator[str]:
    """Each verb with the messages that need it."""
    for verb in May:
        if here := sorted(name for name, need in PERMISSIONS.items() if need is verb):
            yield f"- **{verb.value}**: {codes(here)}"


def errors() -> Iterator[str]:
    """Every reason to refuse, as each face says it."""
    said = words("errors", [why.value for why in CODES])
    heads = ("Reason", "When", "PVP", "Threads", "HTTP", "Exit", "Recoverable")
    rows = (
        (
            code(why.value),
            said[why.value],
            code(face.pvp),
            code(face.msg),
            str(face.http),
            str(face.exit),
            YES if face.recoverable else "no",
        )
        for why, face in CODES.items()
    )
    yield from table(heads, rows)


def quorum() -> Iterator[str]:
    """The kinds of rules."""
    yield from table(("`type`", "Fields", "Satisfied by"), map(_rule, get_args(Quorum)))
    yield ""
    yield (
        f"An `all_of` may hold others: up to {DEEPEST} levels deep, and {MOST_RULES} plain rules"
        "\nin all."
    )


def _rule(kind: type[Struct]) -> tuple[str, str, str]:
    said = inspect.type_info(kind)
    tag = said.tag if isinstance(said, inspect.StructType) else ""
    parts = [f"{code(field.encode_name)}: {in_words(field.type)}" for field in fields(kind)]
    return code(tag), "; ".join(parts) or NO, plain(promise(kind))


def categories() -> Iterator[str]:
    """Kinds of tools, and the names of tools that are known to be of a kind."""
    said = words("categories", [each.value for each in Category])
    rows = (
        (
            code(each.value),
            said[each.value],
            codes(name for name, kind in TRUE_CATEGORY.items() if kind is each and name != each),
        )
        for each in Category
    )
    yield from table(("Category", "What it covers", "Tool names that always count as it"), rows)


def risks() -> Iterator[str]:
    """How much harm a tool could do."""
    said = words("risks", [each.value for each in Risk])
    yield from table(("Risk", ""), ((code(each.value), said[each.value]) for each in Risk))
