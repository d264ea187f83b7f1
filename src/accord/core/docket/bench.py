"""The kernel as a session asks it: guarded, with what follows for each item."""

from collections.abc import Sequence
from datetime import date

from accord.core import docket
from accord.core.docket import convergence, emit, executor, grammar, snapshot
from accord.core.docket.convergence import HARD
from accord.core.docket.executor import TRIALS
from accord.core.docket.model import Batch, Config, Input, Outcome
from accord.core.docket.snapshot import FENCE, Snapshot
from accord.core.docket.steps import parse
from accord.core.docket.words import Policy, Tier
from accord.core.kernel.rulings import Agreement, Finding, Ran, Ruling

LONGEST_WORDS = 200
# A room waits while its batch is ruled on, and what that takes grows with the square of these.
MOST_ITEMS = 100
LARGEST_TEXT = 256 * 1024


class Bench:
    """Rules by the text alone; holds nothing."""

    def rule(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch; `before` is the snapshot it goes on from, or nothing."""
        config = Config(policy=Policy.GUARDED, now=date.fromisoformat(day))
        if why := unfit(text):
            return Ruling("", "", problem=why)
        batch = grammar.parse(f"{text}\n\n{before}" if before else text, config)
        if (count := len(batch.items) + len(batch.nameless)) > MOST_ITEMS:
            return Ruling("", "", problem=f"{count} items; a session decides {MOST_ITEMS} at once")
        return ruling(batch, docket.run(batch, config))

    def after(self, before: str, ran: Ran, day: str) -> Ruling:
        """Decide once more, because a step was run."""
        news = told(before, ran)
        if not news:
            return Ruling("", "", problem=f"{ran.step} is no step of {ran.item} any more")
        return self.rule(news, before, day)

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Independent snapshots of one question, and the table for people."""
        snaps = [read(each) for each in snapshots]
        peers = convergence.compare(snaps, Policy.GUARDED)
        found = (Agreement(p.id, p.kind, p.next_action, holds=p.kind == HARD) for p in peers)
        return tuple(found), "\n".join(convergence.shown(peers, len(snaps)))


def unfit(text: str) -> str:
    """Why a text is not for a session, which alone remembers what was decided in it."""
    if len(text) > LARGEST_TEXT:
        return f"a session decides a batch of {LARGEST_TEXT >> 10} KiB"
    if line := grammar.pasted(text):
        return f"line {line}: the session keeps what was decided; leave snapshots and PREV out"
    return ""


def ruling(batch: Batch, outcome: Outcome) -> Ruling:
    """What came out, or why nothing did."""
    block, hashed = emit.fenced(outcome), emit.snapshot_hash(outcome)
    if not outcome.valid:
        return Ruling(block, hashed, problem=problem(outcome))
    snap = read(block)
    items = {row.id: finding(snap, row.id) for row in snap.queue}
    return Ruling(block, hashed, items, real=any(map(claims_real, batch.items)))


def problem(outcome: Outcome) -> str:
    """The first thing that was wrong, with its line where it has one."""
    lines = (
        " ".join(filter(None, (place(d.line), d.code, d.detail, f"({d.hint})")))
        for d in outcome.diags[:1]
    )
    return " ".join((f"This cannot be decided ({outcome.invalid});", *lines))


def place(line: int) -> str:
    """Where it stands, if it stands on a line."""
    return f"line {line}:" if line else ""


def read(block: str) -> Snapshot:
    """A block as the snapshot it is."""
    return snapshot.parse([line for line in block.split("\n") if not line.startswith(FENCE)])


def finding(snap: Snapshot, item: str) -> Finding:
    """One item as people and gates need it."""
    row, it = snap.rows[item], snap.items[item]
    step = parse(it.next) if it.next else None
    token = step[1].output if step else ""
    answer = executor.allow(snap, item, token, Policy.GUARDED)
    sure = it.confidence.value if it.confidence else ""
    allowed = token if answer.allowed else ""
    return Finding(row.verdict, row.state, sure, token, allowed, answer.why)


def claims_real(inp: Input) -> bool:
    """Whether an item says that something was observed: in news, of whatever tier closes it."""
    judged = (each.evidence_tier for each in (inp.judge.binding or {}).values())
    results = (each.evidence_tier for each in inp.results)
    return Tier.REAL in judged or not grammar.HARD.isdisjoint((*inp.evidence, *results))


def told(before: str, ran: Ran) -> str:
    """A result as the kernel reads it; that it was run here is an observation."""
    item = read(before).items.get(ran.item)
    steps = enumerate(item.steps if item else (), 1)
    number, step = next((each for each in steps if each[1].output == ran.step), (0, None))
    if step is None:
        return ""
    tier = Tier.EXPERIMENT if step.kind in TRIALS else Tier.REAL
    status = "COMPLETED" if ran.success else "FAILED"
    words = plain(" ".join(ran.words.split())[:LONGEST_WORDS] or status)
    return "\n".join(
        (
            f"<<<I id={ran.item}>>>",
            f'<<<RESULT step=S{number} status={status} evidence_tier={tier} result="{words}">>>',
            f"<<<NEW_EVIDENCE evidence_tier={tier}>>>",
            f"Run here: {words}",
            "<<<END>>>",
        )
    )


def plain(words: str) -> str:
    """Words that no reader of the grammar takes for a tag."""
    return words.replace('"', "'").replace("<<<", "‹").replace(">>>", "›")
