"""Evidence: an agent's observation counts only if the log shows the run behind it (UNI-19)."""

from collections.abc import Mapping
from typing import Any

from accord.core.kernel.context import Command
from accord.core.kernel.decision_port import EVIDENCE_TIERS, EvidenceClaim, Ruling
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.field_types import Ids
from accord.core.room.state import Room, StepRun
from accord.core.room.visibility import outcome_of

# A token with this label belongs to a build server, whose reports count as observed.
CI_LABEL = "ci"
OBSERVED_TIER = "REAL"
# From this tier on, evidence claims an observation.
FIRST_OBSERVED_TIER = EVIDENCE_TIERS.index("HISTORICAL")
SETTLED_STATES = frozenset({"CLOSED", "DISCARDED", "EXPIRED"})


# Runs of steps


# Claims


def check_evidence(
    room: Room, command: Command, batch: str, ruling: Ruling, cited: Ids, before: Mapping[str, Any]
) -> None:
    """Refuse an agent's claim of an observation that no run shows; humans are trusted.

    `before`: the items as last ruled if others rely on the decision, else empty.
    """
    if command.actor.kind is not Kind.AGENT:
        return
    runs = [find_cited_run(room, command, batch, id) for id in cited]
    if before:
        check_agent_report(command, batch, ruling)
    trusted = CI_LABEL in room.members[command.actor.principal].labels
    for claim in ruling.claims:
        item_runs = [run for run in runs if run.item == claim.item]
        check_claim(claim, item_runs, trusted=trusted)
        if not trusted:
            check_settled(claim, before)
        if not (trusted or item_runs):
            check_nothing_freed(ruling, before)


def find_cited_run(room: Room, command: Command, batch: str, id: str) -> StepRun:
    """The cited run; raises Refused if it is not evidence for this decision."""
    run = room.runs.get(id)
    if run is not None and (run.batch, run.fork) == (batch, command.message.fork):
        return run
    if run is not None:
        problem = f"it was a step of {run.batch} in {run.fork or 'the trunk'}"
    elif id in room.tools:
        problem = "it has not finished"
    elif (outcome := outcome_of(room, id, command.actor.principal)) and outcome != "finished":
        problem = f"it was {outcome}"
    else:
        problem = "no such run succeeded here since its item last changed"
    detail = f"{id} is not evidence for {batch}: {problem}; cite a successful run of a step that"
    raise Refused(Reason.WRONG_STATE, f"{detail} arguments.decision binds to the item")


def check_agent_report(command: Command, batch: str, ruling: Ruling) -> None:
    """An agent adds results and evidence to others' decisions; it cannot change a judgement."""
    judged = [claim.item for claim in ruling.claims if claim.judges]
    if ruling.rules or judged:
        what = f"the judgement of {', '.join(judged)}" if judged else "its rules"
        detail = f"An agent may add results and evidence to {batch}, not change {what};"
        key = f"decision:{batch}:{command.actor.principal}"
        raise Refused(Reason.FORBIDDEN, f"{detail} add a judgement of its own as {key}")


def check_claim(claim: EvidenceClaim, runs: list[StepRun], *, trusted: bool) -> None:
    """Refuse a tier above what the cited runs show, and results of steps that were not run."""
    shown = [OBSERVED_TIER] if trusted else [run.tier for run in runs]
    best = max(map(EVIDENCE_TIERS.index, shown), default=0)
    if (
        EVIDENCE_TIERS.index(claim.tier) >= FIRST_OBSERVED_TIER
        and EVIDENCE_TIERS.index(claim.tier) > best
    ):
        missing = (
            f"its runs show {EVIDENCE_TIERS[best]}"
            if best
            else "name the run that shows it in `evidence`"
        )
        detail = f"{claim.item}: an agent cannot claim {claim.tier} evidence without a run"
        raise Refused(Reason.WRONG_STATE, f"{detail}; {missing}, or claim SIMULATED")
    steps = {run.step for run in runs}
    ran_experiment = "EXPERIMENT" in shown
    for step in () if trusted else claim.saw:
        if not (step in steps or (not step and ran_experiment)):
            detail = (
                f"{claim.item}: no run shows the result of {step or 'a probe'}; propose it as a"
            )
            raise Refused(Reason.WRONG_STATE, f"{detail} tool with arguments.decision, and cite it")


def check_settled(claim: EvidenceClaim, before: Mapping[str, Any]) -> None:
    """An agent cannot reopen a settled item: earlier runs were already counted."""
    if (item := before.get(claim.item)) and item["state"] in SETTLED_STATES:
        detail = f"{claim.item} is {item['state']}; only a human or a build server can reopen it"
        raise Refused(Reason.FORBIDDEN, detail)


def check_nothing_freed(ruling: Ruling, before: Mapping[str, Any]) -> None:
    """An agent's claim without a run cannot make the kernel allow a step."""
    for item, now in ruling.items.items():
        if now.allowed not in ("", before.get(item, {}).get("allowed", now.allowed)):
            detail = f"Without a run as evidence, an agent cannot release {now.allowed} of {item}"
            raise Refused(Reason.FORBIDDEN, detail)
