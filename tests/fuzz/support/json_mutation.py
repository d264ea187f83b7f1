"""Changes that respect JSON: one line of the input stays an object, and something in it is odd."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from accord.core.dialects.pvp import BODIES, PRIMITIVES
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk, Urgency

DEEP_NESTING = 1200
# What cannot be said by a value: it is written into the text in place of a mark.
SPLICES = (
    b"[" * DEEP_NESTING + b"]" * DEEP_NESTING,
    b'{"a":' * DEEP_NESTING + b"1" + b"}" * DEEP_NESTING,
    rb'"\ud800"',
    b'"\xff"',
    b"NaN",
    b"1e999",
    b"9" * 5000,
    b"-0",
    b"",
)
SPLICE_MARK = "@splice@"
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 0.5, 1e308),
    *("", "a", "\x00", "\x1b[2J", "\u202e", "../x", "x" * 129, "x" * 600, "é", "\U0001f600"),
    *([], {}, [[]], [{}], [None], {"": None}, {"a": []}, ["alice", "bob"]),
    *("2026-01-30T20:00:00.000Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("r", "alice", "bob", "claude", "system", "system:timer", "new", "main", "session:tasks"),
    {"type": "any", "count": 1},
    {"type": "all_of", "rules": [{"type": "majority"}]},
    {"type": "specific", "participants": ["alice"]},
    "@@ -1 +1 @@\n-a\n+b\n",
    SPLICE_MARK,
)
MAX_MUTATED_BYTES = 1 << 16


def dictionary_words() -> list[str]:
    """Everything the message tables name: types, fields, words with a meaning."""
    fields = {name for body in BODIES.values() for name in body.__struct_fields__}
    listed = (Category, Capability, Risk, Role, Urgency)
    meant = {word.value for each in listed for word in each}
    head = {"v", "id", "ts", "session", "sender", "type", "payload", "ref", "causal_refs", "fork"}
    return sorted({*PRIMITIVES, *fields, *meant, *head})


DICTIONARY_WORDS = dictionary_words()


HTTP_WORDS = (
    *("GET ", "POST ", "DELETE ", " HTTP/1.1\r\n", " HTTP/1.0\r\n", "\r\n\r\n", "%2e%2e%2f"),
    *("Host: x\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "\r\n "),
    *("Authorization: Bearer TOKEN\r\n", "Origin: http://y\r\n", "Connection: Upgrade\r\n"),
    *("Upgrade: websocket\r\n", "Expect: 100-continue\r\n", "?as=alice", "&limit=", "|~|"),
)


def libfuzzer_dictionary() -> str:
    """The same as libFuzzer reads it, with some words of HTTP."""
    names = [f'"{word}":' for word in DICTIONARY_WORDS]
    return "".join(f'"{escape_word(word)}"\n' for word in (*DICTIONARY_WORDS, *names, *HTTP_WORDS))


def escape_word(word: str) -> str:
    """As it stands between the quotes of a dictionary."""
    return "".join(c if c.isalnum() or c in "._" else f"\\x{ord(c):02x}" for c in word)


def mutate_json_line(data: bytes, random: Random) -> bytes | None:
    """The input with one line changed, or None where no line is JSON."""
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    try:
        whole = json.loads(lines[place])
    except (ValueError, RecursionError):
        return None
    for _ in range(random.choice((1, 1, 2, 4))):
        whole = mutate_value(whole, random)
    lines[place] = encode(whole, random)
    if random.random() < 0.1:
        lines.insert(random.randrange(len(lines) + 1), random.choice(lines))
    return b"\n".join(lines)[:MAX_MUTATED_BYTES]


def encode(whole: Any, random: Random) -> bytes:
    """As text, with what only text can say."""
    text = json.dumps(whole, ensure_ascii=random.random() < 0.5).encode("utf-8", "replace")
    return text.replace(json.dumps(SPLICE_MARK).encode(), random.choice(SPLICES))


def mutate_value(whole: Any, random: Random) -> Any:
    """The value with one spot of it replaced, removed or repeated."""
    spots = list(mutation_points(whole))
    if not spots:
        return odd_value(random)
    holder, key = random.choice(spots)
    match random.randrange(8):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[random.choice(DICTIONARY_WORDS)] = holder[key]
        case 2 if isinstance(holder, list):
            holder.extend([holder[key]] * random.choice((1, 70, 300)))
        case 3:
            other, spot = random.choice(spots)
            holder[key] = json.loads(json.dumps(other[spot]))
        case _:
            holder[key] = odd_value(random)
    return whole


def odd_value(random: Random) -> Any:
    """Something odd."""
    chosen = random.choice(
        (*ODD_VALUES, random.choice(DICTIONARY_WORDS), random.choice(DICTIONARY_WORDS))
    )
    return json.loads(json.dumps(chosen))


def mutation_points(whole: Any) -> Iterator[tuple[Any, Any]]:
    """Every spot in a value: what holds it, and where."""
    if isinstance(whole, dict | list):
        for key in list(whole) if isinstance(whole, dict) else range(len(whole)):
            yield whole, key
            yield from mutation_points(whole[key])
