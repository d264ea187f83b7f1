"""The seats of a pact as `init` declares them: all of them are good, or none is taken."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.signed import is_key
from accord.core.work.state import Seat
from accord.core.work.words import LONGEST_SEAT, PROTOCOL, Role, is_inside, is_seat

MOST_SEATS = 1000


def opening(project: str, roster: Sequence[Seat], base: str) -> dict[str, object]:
    """The payload of `init`."""
    seats = [
        {"id": each.id, "roles": [*each.roles], "entry": each.entry}
        | ({"key": each.key} if each.key else {})
        for each in roster
    ]
    return {
        "project": project,
        "protocol_version": PROTOCOL,
        "seats": seats,
        "base_branch": base or "main",
    }


def declared(texts: Sequence[str]) -> list[Seat]:
    """The seats, each as `id:roles:entry`; all of them are good, or none is taken."""
    if not texts or len(texts) > MOST_SEATS:
        detail = "Declare at least one seat, with --seat id:roles:entry"
        raise Refused(Why.MALFORMED, detail)
    roster = [seat_of(text) for text in texts]
    taken = set[tuple[str, str]]()
    for seat in roster:
        for what, name, one in (
            ("seat", seat.id, seat.id),
            ("entry file", seat.entry, same_file(seat.entry)),
        ):
            if (what, one) in taken:
                raise Refused(Why.MALFORMED, f"Two seats share the {what} {name}; each has its own")
            taken.add((what, one))
    return roster


def keyed(roster: list[Seat], keys: Sequence[str]) -> list[Seat]:
    """The seats with their public keys, each given as `seat=key`; no two share one."""
    given = dict(each.partition("=")[::2] for each in keys)
    known = {seat.id for seat in roster}
    for seat, key in given.items():
        if seat not in known or not is_key(key):
            detail = f"--key {seat}={key} must name a declared seat and its key, as seat=key"
            raise Refused(Why.MALFORMED, detail)
    if len(set(given.values())) != len(given):
        raise Refused(Why.MALFORMED, "Two seats share one key; each has its own")
    return [replace(seat, key=given.get(seat.id, "")) for seat in roster]


def seat_of(text: str) -> Seat:
    """`id:roles:entry`."""
    fields = text.split(":")
    if len(fields) != 3 or not all(fields):
        detail = f"--seat {text!r} needs exactly three fields, id:roles:entry"
        raise Refused(Why.MALFORMED, detail)
    id, roles, entry = fields
    if not is_inside(entry):
        detail = f"The entry {entry!r} must stay inside the repository: relative, without `..`"
        raise Refused(Why.MALFORMED, detail)
    if same_file(entry).split("/")[0] in {".git", ".pact"}:
        raise Refused(Why.MALFORMED, f"The entry {entry!r} must be a file of the project itself")
    if not is_seat(id):
        detail = f"Seat {id!r} must be up to {LONGEST_SEAT} of a-z, 0-9 and -, as in `gemini-2`"
        raise Refused(Why.MALFORMED, detail)
    return Seat(id, roles_of(roles), entry)


def same_file(path: str) -> str:
    """A path in one spelling."""
    return "/".join(part for part in path.lower().split("/") if part not in {"", "."})


def roles_of(text: str) -> tuple[str, ...]:
    """`a,b`, each one of the three roles."""
    roles = tuple(text.split(","))
    if not set(roles) <= set(Role):
        said = f"Roles {text!r} must be" if text else "Roles are missing; say them with --roles:"
        detail = f"{said} some of {','.join(Role)}, with commas between"
        raise Refused(Why.MALFORMED, detail)
    return roles
