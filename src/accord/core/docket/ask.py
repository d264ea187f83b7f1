"""The one question that a run may put to a person, where it is allowed to ask at all."""

from accord.core.docket.evidence import delay
from accord.core.docket.model import Batch, Config, Item
from accord.core.docket.queue import weight
from accord.core.docket.words import TERMINAL, Asking, ClosePolicy, Level, Trigger

ASKING = frozenset(
    {
        Trigger.BLOCKED_EXTERNAL,
        Trigger.EXTERNAL_DATA_REQUIRED,
        Trigger.CLOSE_BLOCKED_REAL_ONLY,
    }
)
SPECS = "goal state; system boundary; hard constraint"


def mode(item: Item, batch: Batch, config: Config) -> Asking:
    """Whether there may be a question about this item."""
    for said in (item.inp.ask_user, batch.header.ask_user):
        if said in (Asking.ALLOW, Asking.NONE):
            return said
    return Asking.ALLOW if config.ask_user else Asking.NONE


def question(items: list[Item], batch: Batch, config: Config, policy: ClosePolicy) -> str:
    """`ID: text` of the item that matters most, or nothing."""
    before = batch.asked or config.ledger.asked
    for item in sorted(items, key=weight):
        if _eligible(item, policy):
            text = f"{item.id}: {_text(item)}"
            if text != before or _moved(item):
                return text
    drafts = (each for each in items if each.trigger is Trigger.FAIL_FAST_PLAN_SNR and each.asks)
    return next((f"{each.id}: {SPECS}" for each in drafts), "")


def _eligible(item: Item, policy: ClosePolicy) -> bool:
    if not item.asks or item.state in TERMINAL or item.trigger not in ASKING:
        return False
    count = item.counters
    spent = count.pc >= 1 or count.nm >= 2 or count.inc >= 1
    if item.trigger is Trigger.EXTERNAL_DATA_REQUIRED:
        hasty = item.impact is Level.LOW or delay(item) is Level.HIGH
        spent = spent and not hasty
        return spent or (not hasty and (policy is ClosePolicy.REAL_ONLY or item.irreversible))
    return policy is ClosePolicy.REAL_ONLY or item.irreversible or spent


def _text(item: Item) -> str:
    asked = item.judge.external and item.judge.external.ask
    return asked or f"supply HISTORICAL/REAL/EXPERIMENT evidence for {item.critical}"


def _moved(item: Item) -> bool:
    """Whether anything changed since the question was last put."""
    prev = item.prev
    if prev is None or item.inp.evidence:
        return True
    return prev.state is not item.state or prev.trigger is not item.trigger
