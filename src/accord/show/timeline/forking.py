"""Turns about forks and their merges."""

from accord.show.foreign_json import JsonObject, as_items, as_object, as_text, as_texts
from accord.show.text import join_words
from accord.show.timeline.state import MessageHandler, TimelineState, WireEnvelope


def on_fork_create(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    members = as_texts(payload.get("participants"))
    others = [member for member in members if member != envelope.get("sender")]
    company = f" with {join_words(others)}" if others else ""
    name = as_text(envelope.get("fork")) or as_text(payload.get("name"))
    reason = as_text(payload.get("reason"))
    timeline.add_turn(envelope, "note", f"opens the fork {name}{company}", text=reason).fork = ""


def on_fork_switch(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    title = f"switches to {as_text(payload.get('target_fork')) or 'main'}"
    timeline.add_turn(envelope, "note", title)


def on_merge_propose(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    source = as_text(payload.get("source_fork"))
    target = as_text(payload.get("target_fork")) or "main"
    timeline.merges[as_text(envelope.get("id"))] = source
    title = f"proposes to merge {source} into {target} ({as_text(payload.get('strategy'))})"
    timeline.add_turn(envelope, "merge", title, text=as_text(payload.get("summary"))).fork = ""


def on_merge_execute(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    source = timeline.merges.get(as_text(payload.get("merge_proposal")), "the fork")
    resolved = [
        f"{as_text(conflict.get('conflict_id'))}: {as_text(conflict.get('resolution'))}"
        for conflict in map(as_object, as_items(payload.get("resolved_conflicts")))
    ]
    title = f"merges {source}"
    turn = timeline.add_turn(envelope, "merge", title, text=join_words(resolved), mood="good")
    turn.fork = ""


HANDLERS: dict[str, MessageHandler] = {
    "fork.create": on_fork_create,
    "fork.switch": on_fork_switch,
    "merge.propose": on_merge_propose,
    "merge.execute": on_merge_execute,
}
