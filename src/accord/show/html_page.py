"""A session as one self-contained web page: no scripts, images or other files."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from accord.show.text import (
    describe_gating,
    escape_controls,
    join_words,
    local_time,
    one_line,
    plural,
)
from accord.show.timeline.state import SYSTEM, Turn

STYLE = """
:root { color-scheme: light dark; --ink: #1d1f23; --soft: #6a6f78; --paper: #fbfaf8;
  --card: #ffffff; --line: #e4e1da; --code: #f3f1ec; --good: #1a7f4b; --bad: #b3382c;
  --wait: #97670a; --hue: #3a5bbf; --said: #eef2fc }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e5e1; --soft: #9a9fa8; --paper: #16181b;
  --card: #1d2024; --line: #31353b; --code: #121417; --good: #5cc98d; --bad: #f08a7d;
  --wait: #e0b04c; --hue: #8fabff; --said: #1f2736 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif }
main, header, footer { max-width: 50rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-top: 3.5rem; padding-bottom: 1.5rem }
h1 { margin: 0 0 .25rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.02em;
  font-weight: 650; overflow-wrap: anywhere }
header p, footer { color: var(--soft); font-size: .875rem } header p { margin: 0 }
header dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem;
  margin: 1.25rem 0 0; font-size: .875rem }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
h2 { font-size: .8125rem; font-weight: 600; color: var(--soft); margin: 2.25rem 0 1rem;
  padding-bottom: .4rem; border-bottom: 1px solid var(--line) }
article { display: grid; grid-template-columns: 4.25rem minmax(0, 1fr); padding: .2rem 0 }
article > time { color: var(--soft); font-size: .75rem; line-height: 1.6rem;
  font-variant-numeric: tabular-nums }
article p { margin: 0; overflow-wrap: anywhere }
b { font-weight: 600 }
.title { color: var(--soft) }
.text { white-space: pre-wrap }
.note, .note b { color: var(--soft); font-size: .875rem; font-weight: 400 }
.thought .text { color: var(--soft); font-style: italic }
.prompt, .answer, .proposal { padding: .6rem 0 }
.prompt .text { background: var(--said); border-radius: .25rem .75rem .75rem; width: fit-content;
  padding: .55rem .9rem; margin-top: .3rem; max-width: 100% }
.proposal .body { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1rem }
.proposal > time { padding-top: .85rem }
.good .title { color: var(--good) } .bad .title { color: var(--bad) }
.wait .title { color: var(--wait) }
pre { margin: .5rem 0 0; padding: .65rem .85rem; background: var(--code); border-radius: .4rem;
  border: 1px solid var(--line); font: .8125rem/1.55 ui-monospace, "SF Mono", Menlo, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 32rem; overflow-y: auto }
.empty { color: var(--soft) }
footer { padding-top: 3rem; padding-bottom: 3rem }
code { font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, monospace; overflow-wrap: anywhere }
@media (max-width: 34rem) { article { grid-template-columns: minmax(0, 1fr) }
  article > time { line-height: 1.2rem; padding: 0 !important } header { padding-top: 2rem } }
@media print { body { background: none } pre { max-height: none } }
"""

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_page(session: dict[str, Any], turns: Iterable[Turn], *, head: str = "") -> str:
    """The page; `head` is the log's `version:hash`, if known, so that readers can verify it."""
    name = one_line(session["name"] or session["id"])
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f'<meta http-equiv="content-security-policy" content="{CONTENT_SECURITY_POLICY}">',
        f"<title>{escape(name)} · Accord</title>",
        f"<style>{STYLE}</style></head><body>",
        *render_heading(session, name),
        "<main>",
        *(list(render_turns(turns)) or ['<p class="empty">This session has no messages yet.</p>']),
        "</main>",
        f"<footer>{render_footer(session, head)}</footer>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def render_heading(session: dict[str, Any], name: str) -> Iterator[str]:
    people = [
        f"{escape(one_line(member['id']))} ({escape(join_words(map(one_line, member['roles'])))}"
        f"{', agent' if member['type'] == 'agent' else ''})"
        for member in session.get("members", ())
    ]
    yield f"<header><h1>{escape(name)}</h1><p>{escape(one_line(session['status']))}</p><dl>"
    opened = f"{local_time(session['created_at']):%d %B %Y, %H:%M %Z}"
    yield f"<dt>Opened</dt><dd>{opened} by {escape(one_line(session['created_by']))}</dd>"
    if people:
        yield f"<dt>People</dt><dd>{', '.join(people)}</dd>"
    if config := session.get("config"):
        yield f"<dt>Rules</dt><dd>{escape(describe_gating(config))}</dd>"
    yield f"<dt>Session</dt><dd><code>{escape(one_line(session['id']))}</code></dd></dl></header>"


def render_turns(turns: Iterable[Turn]) -> Iterator[str]:
    """All turns, with a heading for each day."""
    day = ""
    for turn in turns:
        at = local_time(turn.at)
        if (today := f"{at:%A, %d %B %Y}") != day:
            yield f"<h2>{today}</h2>"
            day = today
        yield f'<article class="{turn.kind} {turn.mood}" id="s{int(turn.seq)}">'
        yield f'<time datetime="{at.isoformat()}">{at:%H:%M:%S}</time>'
        yield f'<div class="body">{"".join(render_turn(turn))}</div></article>'


def render_turn(turn: Turn) -> Iterator[str]:
    """The title, then the text, then commands, data or output."""
    who = "" if turn.who == SYSTEM else f"<b>{escape(one_line(turn.who))}</b> "
    inline = turn.kind == "note" and turn.text
    details = f" · in {escape(one_line(turn.fork))}" if turn.fork else ""
    details += f" · {escape(one_line(turn.text))}" if inline else ""
    yield f'<p>{who}<span class="title">{escape(one_line(turn.title))}{details}</span></p>'
    if turn.text.strip() and not inline:
        yield f'<p class="text">{escape(escape_controls(turn.text).strip())}</p>'
    if turn.listing.strip():
        yield f"<pre>{escape(escape_controls(turn.listing).rstrip())}</pre>"


def render_footer(session: dict[str, Any], head: str) -> str:
    """Open gates, and the command that verifies the session's log."""
    gates = session.get("open_gates") or 0
    waiting = f"{plural(gates, 'gate')} still open. " if gates else ""
    check = f"accord verify {one_line(session['id'])}" + (
        f" --expect {one_line(head)}" if head else ""
    )
    if not head:
        instruction = "To verify its log, run on the server's machine:"
        return f"{waiting}Written by Accord. {instruction} <code>{escape(check)}</code>"
    return f"{waiting}Written by Accord. To verify its log: <code>{escape(check)}</code>"
