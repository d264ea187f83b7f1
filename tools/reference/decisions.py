"""Decisions by rule: attributes, triggers, gates, rules, remarks and checks, from their tables."""

import inspect
from collections.abc import Iterator

from accord.core.docket import attributes, rules
from accord.core.docket.budget import COMPLEXITY, TIMEBOX
from accord.core.docket.diags import HINTS
from accord.core.docket.lint import CODES
from accord.core.docket.meanings import MEANING
from accord.core.docket.words import GATES, Trigger
from tools.reference.markdown import code, codes, table


def attribute_table() -> Iterator[str]:
    """What stands in the tags `<<<B …>>>` and `<<<I …>>>`."""
    rows = [
        (code(f"<<<{tag}"), code(name), takes if isinstance(takes, str) else codes(takes), bad)
        for tag, values in attributes.TABLE.items()
        for name, (takes, bad) in values.items()
    ]
    yield from table(("Tag", "Attribute", "Takes", "A wrong value counts as"), rows)


def triggers() -> Iterator[str]:
    """Every trigger with its gate, the strongest first."""
    rows = [
        (str(n), code(each), code(GATES[each]), MEANING[each]) for n, each in enumerate(Trigger, 1)
    ]
    yield from table(("", "Trigger", "Gate", "What it says"), rows)


def rule_table() -> Iterator[str]:
    """The rules in the order they are tried."""
    docs = (inspect.getdoc(rule) or "" for rule in (*rules.ALONE, *rules.AMONG))
    yield from table(("Rule", "When"), [each.split(": ", 1) for each in docs])


def budgets() -> Iterator[str]:
    """What an item may cost."""
    rows = [(code(each), f"{TIMEBOX[each]} min", str(COMPLEXITY[each])) for each in TIMEBOX]
    yield from table(("Impact", "Timebox", "Complexity"), rows)


def remarks() -> Iterator[str]:
    """What a run may notice, and how to do better."""
    yield from table(("Code", "How to do better"), [(code(k), v) for k, v in HINTS.items()])


def checks() -> Iterator[str]:
    """What a check may find, and how to mend it."""
    rows = [(code(name), code(reason), hint) for name, (reason, hint) in CODES.items()]
    yield from table(("Code", "Makes it", "How to mend it"), rows)
