"""A session as a conversation: envelopes in, turns out; chunks are put together again."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from accord.core.kernel.times import too_early
from accord.show.text import AGES, count, invocation, listed, quorum, span, standing, unstyled

SYSTEM = "system"

Envelope = dict[str, Any]


class Turn(msgspec.Struct):
    """Somebody did something. `text` is prose, `code` is what a machine reads or printed.

    `mood` is `good`, `bad`, `wait` or nothing.
    """

    kind: str
    at: str
    who: str
    title: str
    seq: int = 0
    text: str = ""
    code: str = ""
    mood: str = ""
    fork: str = ""

    @property
    def listing(self) -> str:
        """The code as it is shown; of what a tool printed the words count, not their colours."""
        return unstyled(self.code) if self.kind == "output" else self.code


class Timeline:
    """Turns in the order in which they began."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.name = ""
        self._answers: dict[str, Turn] = {}
        self._outputs: dict[str, Turn] = {}
        self._tools: dict[str, str] = {}
        self._gates: dict[str, str] = {}
        self._limits: dict[str, tuple[str, int]] = {}
        self._present: set[str] = set()
        self._joins: set[str] = set()
        self._merges: dict[str, str] = {}
        self._tasks: set[str] = set()  # of the pact, as they were told last

    def add(self, said: Envelope) -> None:
        """One more envelope."""
        if teller := TELLERS.get(said["type"]):
            teller(self, said, said["payload"])

    def is_whole(self, turn: Turn) -> bool:
        """Whether nothing will be added to it: an answer that ended, output that has its result."""
        unfinished = (*self._answers.values(), *self._outputs.values())
        return all(turn is not each for each in unfinished)

    def tell(self, said: Envelope, kind: str, title: str, **more: str) -> Turn:
        """A new turn of the envelope's sender."""
        fork = said.get("fork") or ""
        turn = Turn(kind, said["ts"], said["sender"], title, said.get("seq", 0), fork=fork, **more)
        self.turns.append(turn)
        return turn

    # Coming and going

    def created(self, said: Envelope, payload: Envelope) -> None:
        self.name = payload.get("name") or ""
        self._present.add(said["sender"])
        self.tell(said, "note", "opened the session", text=self.name)

    def joined(self, said: Envelope, payload: Envelope) -> None:
        if payload["participant"]["id"] not in self._present:
            self._joins.add(said["id"])

    def announced(self, said: Envelope, payload: Envelope) -> None:
        if said.get("ref") in self._joins:
            self._present.add(payload["id"])
            turn = self.tell(said, "note", f"joined as {listed(payload['roles'])}")
            turn.who = payload["id"]
            turn.text = "an agent" if payload["type"] == "agent" else ""

    def left(self, said: Envelope, payload: Envelope) -> None:
        who = payload.get("participant") or said["sender"]
        self._present.discard(who)
        self.tell(said, "note", "left", text=payload.get("reason") or "").who = who

    def ended(self, said: Envelope, payload: Envelope) -> None:
        title = f"ended the session: {payload['final_state']}"
        self.tell(said, "note", title, text=payload["reason"])

    def configured(self, said: Envelope, payload: Envelope) -> None:
        changes = [f"{name} = {json.dumps(value)}" for name, value in payload["changes"].items()]
        title = f"changed the rules: {listed(changes)}"
        self.tell(said, "note", title, text=payload["reason"])

    def promoted(self, said: Envelope, payload: Envelope) -> None:
        roles = listed(payload["new_roles"]) or "observer"
        title = f"made {payload['participant']} {roles}"
        self.tell(said, "note", title, text=payload.get("reason") or "")

    # Talking

    def prompted(self, said: Envelope, payload: Envelope) -> None:
        self.tell(said, "prompt", f"asks {payload['target_agent']}", text=payload["content"])

    def answering(self, said: Envelope, _payload: Envelope) -> None:
        self._answers[said["id"]] = self.tell(said, "answer", "answers")

    def answered(self, said: Envelope, payload: Envelope) -> None:
        if turn := self._answers.get(said.get("ref") or ""):
            turn.text += payload["text"]

    def finished(self, said: Envelope, payload: Envelope) -> None:
        turn = self._answers.pop(said.get("ref") or "", None)
        how = payload["finish_reason"]
        if turn and how in {"interrupted", "error", "max_tokens"}:
            turn.title, turn.mood = f"answers ({how.replace('_', ' ')})", "bad"

    def amended(self, said: Envelope, payload: Envelope) -> None:
        title = "amends what was asked"
        if reason := payload.get("reason"):
            title += f" ({reason})"
        self.tell(said, "prompt", title, text=payload["amendment"])

    def thinking(self, said: Envelope, payload: Envelope) -> None:
        seen = payload["visible_to"]
        whom = {"all": "", "approvers_only": " for those who may approve"}
        title = whom[seen] if isinstance(seen, str) else f" for {listed(seen)}"
        self._answers[said["id"]] = self.tell(said, "thought", f"thinks{title}")

    def thought(self, said: Envelope, payload: Envelope) -> None:
        turn = self._answers.pop(said.get("ref") or "", None)
        if turn and not turn.text and payload.get("summary"):
            turn.text = payload["summary"]

    # Sharing

    def shelved(self, said: Envelope, payload: Envelope) -> None:
        key, seen = payload["key"], payload.get("visible_to")
        if said["sender"] == SYSTEM and key.startswith("decision:"):
            self.ruled(said, key, payload["content"])
            return
        if said["sender"] == SYSTEM and key == "session:tasks":
            self.tasked(said, payload["content"])
            return
        if said["sender"] == SYSTEM and key.startswith("review:"):
            title = f"{key.removeprefix('review:')} waits for review"
            self.tell(said, "context", title, text=payload["content"], mood="wait")
            return
        whom = f" for {listed(seen)}" if seen else ""
        self.tell(said, "context", f"adds the context {key}{whom}", code=excerpt(payload))

    def ruled(self, said: Envelope, key: str, content: Envelope) -> None:
        id, _, what = key.removeprefix("decision:").rpartition("#")
        if what == "convergence":
            self.tell(said, "context", f"How far {id} is agreed upon", code=content["table"])
            return
        lines = (each["why"] for each in content["items"].values())
        self.tell(said, "context", f"The rules decide on {id}", code="\n".join(lines))

    def tasked(self, said: Envelope, content: Envelope) -> None:
        tasks = content["tasks"]
        lines = [
            f"{each['id']:12} {each['pact']['status'].replace('_', ' '):18} "
            f"{each['pact']['owner']} → {each['pact']['reviewer']}"
            for each in tasks
        ]
        fresh = [each for each in lines if each not in self._tasks]
        self._tasks = set(lines)
        title = f"The pact has {count(len(tasks), 'task')}"
        self.tell(said, "context", title, code="\n".join(fresh))

    def changed(self, said: Envelope, payload: Envelope) -> None:
        title = f"changes the context {payload['key']}"
        self.tell(said, "context", title, text=payload["reason"], code=excerpt(payload))

    def removed(self, said: Envelope, payload: Envelope) -> None:
        title = f"removes the context {payload['key']}"
        if said["sender"] == SYSTEM and payload["key"].startswith("review:"):
            title = f"{payload['key'].removeprefix('review:')} waits for review no longer"
        elif said["sender"] == SYSTEM and payload["key"] == "session:tasks":
            title = "The pact is shown here no longer"
            self._tasks = set()
        self.tell(said, "note", title, text=payload["reason"])

    def confided(self, said: Envelope, payload: Envelope) -> None:
        title = f"shares the secret {payload['key']} with {listed(payload['scope'])}"
        self.tell(said, "note", title)

    def revoked(self, said: Envelope, payload: Envelope) -> None:
        title = f"revokes the secret {payload['key']}"
        if said["sender"] == SYSTEM:
            title = f"The secret {payload['key']} is void"
        self.tell(said, "note", title, text=payload["reason"])

    # Stopping

    def interrupted(self, said: Envelope, payload: Envelope) -> None:
        whom = payload.get("target") or "every agent"
        words = {"pause": "pause", "stop": "stop", "emergency": "stop everything, an emergency"}
        title = f"tells {whom} to {words.get(payload['urgency'], payload['urgency'])}"
        text = "\n".join(filter(None, (payload["message"], payload.get("inject_context"))))
        self.tell(said, "interrupt", title, text=text, mood="bad")

    def acknowledged(self, said: Envelope, payload: Envelope) -> None:
        words = {"paused": "has paused", "stopped": "has stopped", "ignored": "goes on regardless"}
        title = words.get(payload["action_taken"], "has heard the interrupt")
        self.tell(said, "note", title, text=payload.get("ignore_reason") or "")

    # Branching

    def forked(self, said: Envelope, payload: Envelope) -> None:
        others = [each for each in payload["participants"] if each != said["sender"]]
        company = f" with {listed(others)}" if others else ""
        title = f"opens the fork {said.get('fork') or payload['name']}{company}"
        self.tell(said, "note", title, text=payload["reason"]).fork = ""

    def switched(self, said: Envelope, payload: Envelope) -> None:
        self.tell(said, "note", f"goes to {payload['target_fork'] or 'main'}")

    def offered(self, said: Envelope, payload: Envelope) -> None:
        source, target = payload["source_fork"], payload["target_fork"] or "main"
        self._merges[said["id"]] = source
        title = f"proposes to merge {source} into {target} ({payload['strategy']})"
        self.tell(said, "merge", title, text=payload["summary"]).fork = ""

    def merged(self, said: Envelope, payload: Envelope) -> None:
        source = self._merges.get(payload["merge_proposal"], "the fork")
        answers = payload.get("resolved_conflicts") or ()
        settled = [f"{each['conflict_id']}: {each['resolution']}" for each in answers]
        turn = self.tell(said, "merge", f"merges {source}", text=listed(settled), mood="good")
        turn.fork = ""

    # Acting

    def proposed(self, said: Envelope, payload: Envelope) -> None:
        name = str(payload["tool_name"])
        self._tools[said["id"]] = name
        risk, category = payload["risk_level"], payload["category"]
        self.tell(
            said,
            "proposal",
            f"proposes {name} ({category}, {risk} risk)",
            text=payload["description"],
            code=invocation(payload["arguments"]),
            mood="bad" if risk in {"high", "critical"} else "",
        )

    def asked(self, said: Envelope, payload: Envelope) -> None:
        tool = self._tools.get(payload["action_ref"])
        self._gates[said["id"]] = tool or str(payload["action_type"])
        seconds = payload["timeout_seconds"]
        self._limits[said["id"]] = (said["ts"], seconds)
        within = f", within {span(seconds)}" if seconds else ""
        title = f"The gate needs {quorum(payload['quorum'])}{within}"
        rule = payload.get("decision")
        if said["sender"] != SYSTEM:
            own = payload["message"]
        else:
            own = f"By the rules of {standing(rule)}" if rule else ""
        self.tell(said, "gate", title, text=own, mood="wait")

    def approved(self, said: Envelope, payload: Envelope) -> None:
        title = f"approves {self._subject(payload)}".rstrip()
        self.tell(said, "vote", title, text=payload.get("comment") or "", mood="good")

    def rejected(self, said: Envelope, payload: Envelope) -> None:
        title = f"rejects {self._subject(payload)}".rstrip()
        self.tell(said, "vote", title, text=payload["reason"], mood="bad")

    def _subject(self, payload: Envelope) -> str:
        gate = self._gates.get(payload.get("gate") or "", "")
        return self._tools.get(payload.get("tool_proposal") or "", gate)

    def timed_out(self, said: Envelope, payload: Envelope) -> None:
        subject, how = self._gates.get(payload["gate"], ""), payload["resolution"]
        got, needed = payload["approvals_received"], payload["approvals_required"]
        since, limit = self._limits.get(payload["gate"], ("", 0))
        closed = too_early(since, limit, said["ts"])
        why = "closed with the session" if closed else f"time is up, {how}"
        title = f"{subject}: {why} ({got} of {count(needed, 'approval')})"
        self.tell(said, "vote", title.removeprefix(": "), mood="bad")

    def granted(self, said: Envelope, payload: Envelope) -> None:
        if said["sender"] != SYSTEM:
            return
        name = self._tools.get(payload["tool_proposal"], "it")
        by = listed(payload["approved_by"])
        title = f"{name} may run, approved by {by}" if by else f"{name} may run, no gate needed"
        self.tell(said, "grant", title, mood="good")

    def printed(self, said: Envelope, payload: Envelope) -> None:
        proposal = payload["tool_proposal"]
        if proposal not in self._outputs:
            name = self._tools.get(proposal, "it")
            self._outputs[proposal] = self.tell(said, "output", f"runs {name}")
        self._outputs[proposal].code += payload["text"]

    def resulted(self, said: Envelope, payload: Envelope) -> None:
        self._outputs.pop(payload["tool_proposal"], None)
        name = self._tools.get(payload["tool_proposal"], "it")
        took = span(min(payload["duration_ms"], AGES * 1000) / 1000)
        good = payload["success"]
        title = f"finished {name} in {took}" if good else f"failed at {name} after {took}"
        mood = "good" if good else "bad"
        self.tell(said, "result", title, text=payload.get("error") or "", mood=mood)


Teller = Callable[[Timeline, Envelope, Envelope], None]

TELLERS: dict[str, Teller] = {
    "session.create": Timeline.created,
    "session.join": Timeline.joined,
    "session.leave": Timeline.left,
    "session.end": Timeline.ended,
    "session.config_update": Timeline.configured,
    "participant.announce": Timeline.announced,
    "participant.role_change": Timeline.promoted,
    "prompt.submit": Timeline.prompted,
    "prompt.amend": Timeline.amended,
    "thinking.start": Timeline.thinking,
    "thinking.chunk": Timeline.answered,
    "thinking.end": Timeline.thought,
    "context.add": Timeline.shelved,
    "context.update": Timeline.changed,
    "context.remove": Timeline.removed,
    "secret.share": Timeline.confided,
    "secret.revoke": Timeline.revoked,
    "interrupt.raise": Timeline.interrupted,
    "interrupt.acknowledge": Timeline.acknowledged,
    "fork.create": Timeline.forked,
    "fork.switch": Timeline.switched,
    "merge.propose": Timeline.offered,
    "merge.execute": Timeline.merged,
    "response.start": Timeline.answering,
    "response.chunk": Timeline.answered,
    "response.end": Timeline.finished,
    "tool.propose": Timeline.proposed,
    "tool.approve": Timeline.approved,
    "tool.reject": Timeline.rejected,
    "tool.execute": Timeline.granted,
    "tool.output": Timeline.printed,
    "tool.result": Timeline.resulted,
    "gate.request": Timeline.asked,
    "gate.approve": Timeline.approved,
    "gate.reject": Timeline.rejected,
    "gate.timeout": Timeline.timed_out,
}


def excerpt(payload: Envelope) -> str:
    """What stands in a context item, or what changed in it."""
    content = payload.get("content") or payload.get("new_content") or payload.get("diff")
    if content is None:
        ref = payload.get("content_ref") or payload.get("new_content_ref") or {}
        return f"{ref.get('uri') or ref.get('hash', '')} ({ref.get('mime_type', '')})"
    return content if isinstance(content, str) else json.dumps(content, indent=2)


def turns(envelopes: Iterable[Envelope]) -> list[Turn]:
    """The whole conversation."""
    timeline = Timeline()
    for each in envelopes:
        timeline.add(each)
    return timeline.turns
