"""Decisions by rule: attributes, triggers, gates, rules, remarks and checks, from their tables."""

import inspect
from collections.abc import Iterator

from accord.core.docket.diagnostics import HINT_OF_CODE
from accord.core.docket.parsing import tag_attributes
from accord.core.docket.rules import state_rules
from accord.core.docket.triggers import GATE_OF_TRIGGER, TRIGGER_TEXT, Trigger
from accord.core.docket.validation.snapshot_form import FLAW_CODES
from accord.core.docket.vocabulary import MAX_COMPLEXITY_TAX, TIMEBOX_MINUTES
from tools.reference.markdown import code, codes, table


def attribute_table() -> Iterator[str]:
    """What stands in the tags `<<<B …>>>` and `<<<I …>>>`."""
    tags = {"B": tag_attributes.HEADER_ATTRIBUTES, "I": tag_attributes.ITEM_ATTRIBUTES}
    item_id = (code("<<<I"), code("id"), tag_attributes.ID_CHARS, "the item is skipped")
    rows = [
        (
            *(code(f"<<<{tag}"), code(name)),
            each.takes if isinstance(each.takes, str) else codes(each.takes),
            each.invalid_counts_as,
        )
        for tag, known in tags.items()
        for name, each in known.items()
    ]
    rows.insert(len(tags["B"]), item_id)
    yield from table(("Tag", "Attribute", "Takes", "A wrong value counts as"), rows)


def triggers() -> Iterator[str]:
    """Every trigger with its gate, the strongest first."""
    rows = [
        (str(n), code(each), code(GATE_OF_TRIGGER[each]), TRIGGER_TEXT[each])
        for n, each in enumerate(Trigger, 1)
    ]
    yield from table(("", "Trigger", "Gate", "What it says"), rows)


def rule_table() -> Iterator[str]:
    """The rules in the order they are tried."""
    docs = (
        inspect.getdoc(rule) or ""
        for rule in (*state_rules.SINGLE_ITEM_RULES, *state_rules.DEPENDENCY_ORDER_RULES)
    )
    yield from table(("Rule", "When"), [each.split(": ", 1) for each in docs])


def budgets() -> Iterator[str]:
    """What an item may cost."""
    rows = [
        (code(each), f"{TIMEBOX_MINUTES[each]} min", str(MAX_COMPLEXITY_TAX[each]))
        for each in TIMEBOX_MINUTES
    ]
    yield from table(("Impact", "Timebox", "Complexity"), rows)


def remarks() -> Iterator[str]:
    """What a run may notice, and how to do better."""
    yield from table(("Code", "How to do better"), [(code(k), v) for k, v in HINT_OF_CODE.items()])


def checks() -> Iterator[str]:
    """What a check may find, and how to mend it."""
    rows = [(code(name), code(reason), hint) for name, (reason, hint) in FLAW_CODES.items()]
    yield from table(("Code", "Makes it", "How to mend it"), rows)
