"""Turns of members: who opened, joined, left, was removed, and which rules they set."""

import json

from accord.show.foreign_json import (
    JsonObject,
    as_object,
    as_text,
    as_texts,
)
from accord.show.text import (
    join_words,
)
from accord.show.timeline.state import MessageHandler, TimelineState, WireEnvelope


def on_session_create(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    timeline.name = as_text(payload.get("name"))
    timeline.present.add(as_text(envelope.get("sender")))
    timeline.add_turn(envelope, "note", "opened the session", text=timeline.name)


def on_session_join(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    participant = as_object(payload.get("participant"))
    if as_text(participant.get("id")) not in timeline.present:
        timeline.joins.add(as_text(envelope.get("id")))


def on_announce(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    if as_text(envelope.get("ref")) in timeline.joins:
        member = as_text(payload.get("id"))
        timeline.present.add(member)
        roles = join_words(as_texts(payload.get("roles")))
        turn = timeline.add_turn(envelope, "note", f"joined as {roles}")
        turn.who = member
        turn.text = "an agent" if payload.get("type") == "agent" else ""


def on_session_leave(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    member = as_text(payload.get("participant")) or as_text(envelope.get("sender"))
    timeline.present.discard(member)
    turn = timeline.add_turn(envelope, "note", "left", text=as_text(payload.get("reason")))
    turn.who = member


def on_session_end(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    title = f"ended the session: {as_text(payload.get('final_state'))}"
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))


def on_config_update(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    changes = as_object(payload.get("changes"))
    settings = [f"{name} = {json.dumps(value)}" for name, value in changes.items()]
    title = f"changed the rules: {join_words(settings)}"
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))


def on_role_change(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    who = as_text(payload.get("participant"))
    roles = join_words(as_texts(payload.get("new_roles")))
    was_removed = who in timeline.removed
    title = f"lets {who} back in, as {roles}" if was_removed else f"made {who} {roles}"
    title = title if roles else f"removed {who}"
    timeline.removed = timeline.removed - {who} if roles else timeline.removed | {who}
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))


HANDLERS: dict[str, MessageHandler] = {
    "session.create": on_session_create,
    "session.join": on_session_join,
    "participant.announce": on_announce,
    "session.leave": on_session_leave,
    "session.end": on_session_end,
    "session.config_update": on_config_update,
    "participant.role_change": on_role_change,
}
