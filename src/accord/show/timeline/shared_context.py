"""Turns about shared context: items, rulings, tasks of a pact, and secrets."""

from accord.show.foreign_json import JsonObject, as_listing, as_object, as_text, as_texts
from accord.show.text import join_words, plural
from accord.show.timeline.state import SYSTEM, MessageHandler, TimelineState, WireEnvelope

TASKS_KEY = "session:tasks"


def on_context_add(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    key = as_text(payload.get("key"))
    if envelope.get("sender") == SYSTEM and _add_system_item(
        timeline, envelope, key, payload.get("content")
    ):
        return
    visible_to = as_texts(payload.get("visible_to"))
    readers = f" for {join_words(visible_to)}" if visible_to else ""
    title = f"adds the context {key}{readers}"
    timeline.add_turn(envelope, "context", title, code=context_excerpt(payload))


def _add_system_item(
    timeline: TimelineState, envelope: WireEnvelope, key: str, content: object
) -> bool:
    """Show an item that the server wrote; False if it is none of the known ones."""
    if key.startswith("decision:"):
        return _add_ruling(timeline, envelope, key, as_object(content))
    if key == TASKS_KEY:
        return _add_tasks(timeline, envelope, as_object(content))
    if key.startswith("review:") and isinstance(content, str):
        title = f"{key.removeprefix('review:')} waits for review"
        timeline.add_turn(envelope, "context", title, text=content, mood="wait")
        return True
    return False


def _add_ruling(
    timeline: TimelineState, envelope: WireEnvelope, key: str, content: JsonObject
) -> bool:
    id, _, part = key.removeprefix("decision:").rpartition("#")
    table, items = content.get("table"), content.get("items")
    if part == "convergence" and isinstance(table, str):
        timeline.add_turn(envelope, "context", f"How far the judges agree on {id}", code=table)
        return True
    if part != "convergence" and isinstance(items, dict):
        lines = [as_text(as_object(item).get("why")) for item in items.values()]
        title = f"The rules decide on {id}"
        timeline.add_turn(envelope, "context", title, code="\n".join(lines))
        return True
    return False


def _add_tasks(timeline: TimelineState, envelope: WireEnvelope, content: JsonObject) -> bool:
    """List the tasks that changed since the last list; False if there is no list of tasks."""
    tasks = content.get("tasks")
    if not isinstance(tasks, list):
        return False
    lines = [task_line(task) for task in tasks]
    changed = [line for line in lines if line not in timeline.tasks]
    timeline.tasks = set(lines)
    title = f"The pact has {plural(len(tasks), 'task')}"
    timeline.add_turn(envelope, "context", title, code="\n".join(changed))
    return True


def on_context_update(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    timeline.add_turn(
        envelope,
        "context",
        f"changes the context {as_text(payload.get('key'))}",
        text=as_text(payload.get("reason")),
        code=context_excerpt(payload),
    )


def on_context_remove(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    key = as_text(payload.get("key"))
    title = f"removes the context {key}"
    if envelope.get("sender") == SYSTEM and key.startswith("review:"):
        title = f"{key.removeprefix('review:')} no longer waits for review"
    elif envelope.get("sender") == SYSTEM and key == TASKS_KEY:
        title = "The pact is no longer shown here"
        timeline.tasks = set()
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))


def on_secret_share(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    scope = join_words(as_texts(payload.get("scope")))
    title = f"shares the secret {as_text(payload.get('key'))} with {scope}"
    timeline.add_turn(envelope, "note", title)


def on_secret_revoke(timeline: TimelineState, envelope: WireEnvelope, payload: JsonObject) -> None:
    key = as_text(payload.get("key"))
    title = f"revokes the secret {key}"
    if envelope.get("sender") == SYSTEM:
        title = f"The secret {key} is no longer valid"
    timeline.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))


def task_line(task: object) -> str:
    """`T1  in progress  owner → reviewer`; a task of another shape as JSON."""
    id, pact = as_object(task).get("id"), as_object(as_object(task).get("pact"))
    status, owner, reviewer = (pact.get(name) for name in ("status", "owner", "reviewer"))
    if not (isinstance(id, str) and isinstance(status, str)):
        return as_text(task)
    return f"{id:12} {status.replace('_', ' '):18} {as_text(owner)} → {as_text(reviewer)}"


def context_excerpt(payload: JsonObject) -> str:
    """The content of a context item, its change, or where the content is stored."""
    content = payload.get("content") or payload.get("new_content") or payload.get("diff")
    if content is None:
        ref = as_object(payload.get("content_ref") or payload.get("new_content_ref"))
        location = as_text(ref.get("uri")) or as_text(ref.get("hash"))
        return f"{location} ({as_text(ref.get('mime_type'))})"
    return as_listing(content)


HANDLERS: dict[str, MessageHandler] = {
    "context.add": on_context_add,
    "context.update": on_context_update,
    "context.remove": on_context_remove,
    "secret.share": on_secret_share,
    "secret.revoke": on_secret_revoke,
}
