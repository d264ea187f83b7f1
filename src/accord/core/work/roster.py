"""Parse and check the seats that `init` declares."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.signatures import is_key
from accord.core.work.state import Seat
from accord.core.work.vocabulary import (
    MAX_SEAT_LENGTH,
    PROTOCOL_VERSION,
    SeatRole,
    is_inside_repository,
    is_new_seat_id,
)

MAX_SEATS = 1000


def init_payload(project: str, roster: Sequence[Seat], base: str) -> dict[str, object]:
    """The payload of an `init` event."""
    seats = [
        {"id": seat.id, "roles": [*seat.roles], "entry": seat.entry}
        | ({"key": seat.key} if seat.key else {})
        for seat in roster
    ]
    return {
        "project": project,
        "protocol_version": PROTOCOL_VERSION,
        "seats": seats,
        "base_branch": base or "main",
    }


def parse_roster(texts: Sequence[str]) -> list[Seat]:
    """Parse seats given as `id:roles:entry`; refused if any of them is invalid."""
    if not texts or len(texts) > MAX_SEATS:
        detail = "Declare at least one seat with --seat id:roles:entry"
        raise Refused(Reason.MALFORMED, detail)
    roster = [parse_seat(text) for text in texts]
    taken = set[tuple[str, str]]()
    for seat in roster:
        for what, name, normalized in (
            ("seat", seat.id, seat.id),
            ("entry file", seat.entry, normalize_path(seat.entry)),
        ):
            if (what, normalized) in taken:
                raise Refused(
                    Reason.MALFORMED, f"Two seats share the {what} {name}; each seat needs its own"
                )
            taken.add((what, normalized))
    return roster


def with_keys(roster: list[Seat], keys: Sequence[str]) -> list[Seat]:
    """The seats with public keys given as `seat=key`; refused if two seats share a key."""
    key_by_seat = dict(text.partition("=")[::2] for text in keys)
    known = {seat.id for seat in roster}
    for seat, key in key_by_seat.items():
        if seat not in known or not is_key(key):
            detail = f"--key {seat}={key} must be seat=key, with a declared seat and its public key"
            raise Refused(Reason.MALFORMED, detail)
    if len(set(key_by_seat.values())) != len(key_by_seat):
        raise Refused(Reason.MALFORMED, "Two seats share one key; each seat needs its own")
    return [replace(seat, key=key_by_seat.get(seat.id, "")) for seat in roster]


def parse_seat(text: str) -> Seat:
    """Parse one seat given as `id:roles:entry`."""
    fields = text.split(":")
    if len(fields) != 3 or not all(fields):
        detail = f"--seat {text!r} needs exactly three fields, id:roles:entry"
        raise Refused(Reason.MALFORMED, detail)
    id, roles, entry = fields
    if not is_inside_repository(entry):
        detail = f"The entry {entry!r} must stay inside the repository: relative, without `..`"
        raise Refused(Reason.MALFORMED, detail)
    if normalize_path(entry).split("/")[0] in {".git", ".pact"}:
        raise Refused(Reason.MALFORMED, f"The entry {entry!r} must not be inside .git or .pact")
    if not is_new_seat_id(id):
        detail = (
            f"Seat {id!r} must be up to {MAX_SEAT_LENGTH} of a-z, 0-9 and -, such as `gemini-2`"
        )
        raise Refused(Reason.MALFORMED, detail)
    return Seat(id, parse_roles(roles), entry)


def normalize_path(path: str) -> str:
    """A path in a normal form, for comparing."""
    return "/".join(part for part in path.lower().split("/") if part not in {"", "."})


def parse_roles(text: str) -> tuple[str, ...]:
    """Parse roles given as `a,b`."""
    roles = tuple(text.split(","))
    if not set(roles) <= set(SeatRole):
        problem = f"Roles {text!r} must be" if text else "Roles are missing; give --roles with"
        detail = f"{problem} one or more of {','.join(SeatRole)}, separated by commas"
        raise Refused(Reason.MALFORMED, detail)
    return roles
