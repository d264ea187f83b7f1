"""Who may do what, when a gate passes, and how a refusal is said."""

from collections.abc import Iterator
from typing import get_args

from msgspec import Struct, inspect

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.ballot import MAX_QUORUM_DEPTH, MAX_QUORUM_RULES, Quorum
from accord.core.kernel.role_permissions import (
    ROLE_CAPABILITIES,
    Capability,
    Kind,
    Permission,
    Role,
    permissions_for,
)
from accord.core.room.approval.gates import CATEGORY_BY_TOOL_NAME
from accord.core.room.permission_listing import PERMISSIONS
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
from tools.reference.markdown import code, codes, plain, table
from tools.reference.shapes import describe_type, fields, first_sentence
from tools.reference.words import sentences_of

YES, NO = "yes", "–"
INSIDE = (Kind.HUMAN, Kind.AGENT)


def roles_with(verb: Permission, kind: Kind) -> list[Role]:
    """The roles that give a member of this kind the verb."""
    return [role for role in Role if verb in permissions_for(kind, frozenset({role}), frozenset())]


def holders(verb: Permission) -> str:
    """Who has a right, in words."""
    if verb is Permission.SERVER_ONLY:
        return "the server alone"
    if verb is Permission.ENTER:
        return "every principal that the server admits"
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
        for role, given in ROLE_CAPABILITIES.items()
    )
    yield from table(heads, rows)


def matrix() -> Iterator[str]:
    """Roles and verbs; a verb that only agents have says so."""
    said = sentences_of("verbs", [verb.value for verb in Permission])
    heads = ("Verb", *(code(role.value) for role in Role), "Meaning")
    rows = ((verb.value, *_cells(verb), said[verb.value]) for verb in Permission)
    yield from table(heads, rows)


def _cells(verb: Permission) -> Iterator[str]:
    people, agents = (roles_with(verb, kind) for kind in INSIDE)
    for role in Role:
        if role in people:
            yield YES
        else:
            yield "agents" if role in agents else NO


def needs() -> Iterator[str]:
    """Each verb with the messages that need it."""
    for verb in Permission:
        if here := sorted(name for name, need in PERMISSIONS.items() if need is verb):
            yield f"- **{verb.value}**: {codes(here)}"


def errors() -> Iterator[str]:
    """Every reason to refuse, as each face says it."""
    said = sentences_of("errors", [why.value for why in ERROR_CODES])
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
        for why, face in ERROR_CODES.items()
    )
    yield from table(heads, rows)


def quorum() -> Iterator[str]:
    """The kinds of rules."""
    yield from table(("`type`", "Fields", "Satisfied by"), map(_rule, get_args(Quorum)))
    yield ""
    yield (
        f"An `all_of` may hold others: up to {MAX_QUORUM_DEPTH} levels deep, "
        f"and {MAX_QUORUM_RULES} plain rules"
        "\nin all."
    )


def _rule(kind: type[Struct]) -> tuple[str, str, str]:
    said = inspect.type_info(kind)
    tag = said.tag if isinstance(said, inspect.StructType) else ""
    parts = [f"{code(field.encode_name)}: {describe_type(field.type)}" for field in fields(kind)]
    return code(tag), "; ".join(parts) or NO, plain(first_sentence(kind))


def categories() -> Iterator[str]:
    """Kinds of tools, and the names of tools that are known to be of a kind."""
    said = sentences_of("categories", [each.value for each in Category])
    rows = (
        (
            code(each.value),
            said[each.value],
            codes(
                name
                for name, kind in CATEGORY_BY_TOOL_NAME.items()
                if kind is each and name != each
            ),
        )
        for each in Category
    )
    yield from table(("Category", "What it covers", "Tool names that always count as it"), rows)


def risks() -> Iterator[str]:
    """How much harm a tool could do."""
    said = sentences_of("risks", [each.value for each in Risk])
    yield from table(("Risk", ""), ((code(each.value), said[each.value]) for each in Risk))
