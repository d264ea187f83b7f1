"""Who must agree, as people type it: `any 2`, `majority`, `any 2 + label security 1`."""

import argparse
import json
from typing import Any

HELP = (
    "any N, all, majority, role ROLE N, label LABEL N, or names as alice,bob; "
    "several joined by +, or JSON"
)


def quorum(text: str) -> dict[str, Any]:
    """The rule, checked, for a flag."""
    import msgspec

    from accord.core.kernel import ballot
    from accord.core.kernel.authority import Role
    from accord.core.kernel.refusal import Refused

    try:
        rule = parse(text)
        ballot.check(msgspec.convert(rule, ballot.Quorum))
    except (ValueError, Refused) as no:
        roles = f"; roles are {', '.join(Role)}" if "enum" in str(no) else ""
        said = f"{text!r} is no quorum{roles}; write {HELP}"
        detail = str(no) if isinstance(no, Refused) else said
        raise argparse.ArgumentTypeError(detail) from None
    return rule


def parse(text: str) -> dict[str, Any]:
    """The rule as PVP writes it; ValueError where it is none."""
    if text.lstrip().startswith("{"):
        rule = json.loads(text)
        return dict(rule)
    rules = [_rule(part.split(), text) for part in text.split("+")]
    return rules[0] if len(rules) == 1 else {"type": "all_of", "rules": rules}


def _rule(words: list[str], text: str) -> dict[str, Any]:
    match words:
        case ["all" | "majority" as kind]:
            return {"type": kind}
        case ["any"]:
            return {"type": "any", "count": 1}
        case ["any", number] if number.isdigit():
            return {"type": "any", "count": int(number)}
        case ["role" | "label" as kind, name]:
            return {"type": kind, kind: name, "count": 1}
        case ["role" | "label" as kind, name, number] if number.isdigit():
            return {"type": kind, kind: name, "count": int(number)}
        case ["specific", names] | [names] if names.strip(","):
            return {"type": "specific", "participants": [n for n in names.split(",") if n]}
        case _:
            raise ValueError(f"{text!r} is no quorum; write {HELP}")
