"""Quorum rules on the command line: `2`, `all`, `majority`, `any 2 + label security 1`."""

import argparse
import json
from typing import Any

QUORUM_HELP = (
    "N or any N, all, majority, role ROLE N, label LABEL N, or names such as alice,bob; "
    "join several with +, or use JSON"
)
# Words for rules that could be mistaken for a person's name.
RULE_WORDS = {
    **dict.fromkeys(("all", "everybody", "everyone", "each", "consensus"), "all"),
    **dict.fromkeys(("unanimous", "unanimously", "unanimity"), "all"),
    **dict.fromkeys(("majority", "most", "half"), "majority"),
    **dict.fromkeys(("any", "anybody", "anyone", "somebody", "someone", "one"), "any"),
}


def quorum_type(text: str) -> dict[str, Any]:
    """An argument type for quorum rules."""
    import msgspec

    from accord.core.kernel import ballot
    from accord.core.kernel.refusal import Refused
    from accord.core.kernel.role_permissions import Role

    try:
        rule = parse_quorum(text)
        ballot.check_quorum(msgspec.convert(rule, ballot.Quorum))
    except (ValueError, Refused) as error:
        roles = f"; roles are {', '.join(Role)}" if "enum" in str(error) else ""
        usage = f"{text!r} is not a quorum{roles}; use {QUORUM_HELP}"
        detail = str(error) if isinstance(error, Refused) else usage
        raise argparse.ArgumentTypeError(detail) from None
    return rule


def parse_quorum(text: str) -> dict[str, Any]:
    """The rule as in PVP; raises ValueError if it is malformed."""
    if text.lstrip().startswith("{"):
        rule = json.loads(text)
        return dict(rule)
    rules = [_rule(part.split(), text) for part in text.split("+")]
    return rules[0] if len(rules) == 1 else {"type": "all_of", "rules": rules}


def _rule(words: list[str], text: str) -> dict[str, Any]:
    kind = RULE_WORDS.get(words[0].lower(), "") if words else ""
    match words:
        case [_] if kind == "any":
            return {"type": "any", "count": 1}
        case [_] if kind:
            return {"type": kind}
        case ["any" | "Any", number] | [number] if number.isdecimal() and number.isascii():
            return {"type": "any", "count": int(number)}
        case ["role" | "label" as kind, name]:
            return {"type": kind, kind: name, "count": 1}
        case ["role" | "label" as kind, name, number] if number.isdigit():
            return {"type": kind, kind: name, "count": int(number)}
        case ["specific", names] | [names] if names.strip(","):
            return {"type": "specific", "participants": [n for n in names.split(",") if n]}
        case _:
            raise ValueError(f"{text!r} is not a quorum; use {QUORUM_HELP}")
