"""Configuration files as people write them: JSON and TOML with comments, blanks and odd values."""

import json
from typing import Any

from hypothesis import strategies as st

from accord.hosts.configuration.entry import Entry

RECORD = "/home/ann/.config/accord/connections/claude-code-0011aabb.json"
HOOK = f'/bin/sh -c \'"$0" "$@" || exit 2\' /usr/bin/python3 {RECORD} claude-code pre-tool'
MCP = Entry(path=("mcpServers",), key="accord", value={"command": "accord", "args": ["mcp"]})
GATE = Entry(
    path=("hooks", "PreToolUse"),
    value={"matcher": "*", "hooks": [{"type": "command", "command": HOOK, "timeout": 60}]},
    mark=RECORD,
)
STOP = Entry(path=("hooks", "Stop"), value={"hooks": [{"command": HOOK + " stop"}]}, mark=RECORD)
ENTRIES = (MCP, GATE, STOP)

texts = st.text(st.characters(codec="utf-8"), max_size=12)
keys = st.one_of(texts, st.sampled_from(["theme", "env", "model"])).filter(
    lambda key: key not in {"mcpServers", "mcp", "hooks", "permissions", "version"}
)
scalars = st.one_of(texts, st.integers(-(2**53), 2**53), st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
hook_lists = st.lists(
    st.fixed_dictionaries({"matcher": texts, "hooks": st.lists(values, max_size=2)}), max_size=2
)
settings = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": st.dictionaries(keys, values, max_size=2),
        "permissions": st.fixed_dictionaries({"allow": st.lists(texts, max_size=2)}),
        "hooks": st.fixed_dictionaries(
            {}, optional={"PreToolUse": hook_lists, "Stop": hook_lists, "Other": hook_lists}
        ),
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """What a settings file means."""
    pairs = list({**draw(st.dictionaries(keys, values, max_size=3)), **draw(settings)}.items())
    return dict(draw(st.permutations(pairs)))


blanks = st.text(" \t\n", max_size=3)
comments = st.one_of(
    blanks,
    texts.map(lambda text: f" // {' '.join(text.split())} {{[,\n"),
    texts.map(lambda text: f' /* {text.replace("*/", "")} " */ '),
)


@st.composite
def json_texts(draw: st.DrawFn, *, with_comments: bool) -> str:
    """A document in any layout."""
    document = draw(documents())
    if draw(st.booleans()):
        indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
        newline = draw(st.sampled_from(["\n", "\r\n"]))
        text = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()))
        return text.replace("\n", newline) + draw(st.sampled_from(["", newline]))
    gaps = comments if with_comments else blanks
    return draw(gaps) + spaced(draw, document, gaps, last_comma=with_comments) + draw(gaps)


def spaced(draw: st.DrawFn, value: Any, gaps: st.SearchStrategy[str], *, last_comma: bool) -> str:
    """The value with blanks and comments wherever they may be."""
    if isinstance(value, dict):
        items = [
            json.dumps(key)
            + draw(gaps)
            + ":"
            + draw(gaps)
            + spaced(draw, each, gaps, last_comma=last_comma)
            for key, each in value.items()
        ]
        opening, closing = "{", "}"
    elif isinstance(value, list):
        items = [spaced(draw, each, gaps, last_comma=last_comma) for each in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value)
    inner = ",".join(draw(gaps) + item + draw(gaps) for item in items)
    if items and last_comma and draw(st.booleans()):
        inner += "," + draw(gaps)
    return opening + (inner or draw(gaps)) + closing


TOML_LINES = [
    "# a comment with [brackets]",
    "",
    'model = "gpt-5.5"  # the model',
    "names = [1, 2,\n  3]",
    'prompt = """\n[not.a.header]\nmore\n"""',
    "'odd key' = 'C:\\path'",
    "when = 2026-01-30T20:00:00Z",
]
TOML_TABLES = [
    "[features]\nhooks = true",
    '[projects."/home/ann/work"]\ntrust_level = "trusted"',
    '[mcp_servers.docs]\ncommand = "docs"\n\n[mcp_servers.docs.env]\nA = "1"',
    '[[hooks.PreToolUse]]\nmatcher = "Bash"\n  [[hooks.PreToolUse.hooks]]\n  command = "mine"',
    '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "say [[done]]"',
    '[hooks.state."/home/ann/.codex/config.toml:stop:0:0"]\ntrusted_hash = "sha256:1"',
    "[notes]\ntext = '''\n[[hooks.Stop]]\ncommand = \"not a hook\"\n'''",
]


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """Plain values, then tables, with comments between them."""
    top = draw(st.lists(st.sampled_from(TOML_LINES), unique=True, max_size=5))
    below = draw(st.lists(st.sampled_from(TOML_TABLES), unique=True, max_size=5))
    gap = draw(st.sampled_from(["\n", "\n\n", "\n# -- [x]\n", "\n\n\n"]))
    text = gap.join([*top, *below]) + draw(st.sampled_from(["", "\n", "\n\n", "\n# the end"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
