"""TypeScript types of what the page reads and sends, from the server's OpenAPI document."""

import json
import re
from pathlib import Path
from typing import Any

from accord.api.responses import RECEIVED_ENVELOPE
from accord.transports.http.api_docs import openapi

ROOT = Path(__file__).resolve().parents[1]
TYPES_FILE = ROOT / "web" / "src" / "lib" / "server" / "types.ts"
Schema = dict[str, Any]
HEAD = """// Written by tools/page_types.py from the server's OpenAPI document; see `make page`.
"""
IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
# Schemas of whole envelopes that a client sends; their payloads are those of what it receives.
SENT_PREFIX = "send."
ENVELOPES = {RECEIVED_ENVELOPE, "Message"}
ERROR = "error"
# The names that would hide one of the browser's.
RENAMED = {ERROR: "ErrorReport"}
ENVELOPE = """/** A message of one type; `seq` is 0 for signals, which are not stored. */
export interface EnvelopeOf<T extends keyof Payloads> {
  v: number;
  id: string;
  ts: string;
  session: string;
  sender: string;
  type: T;
  payload: Payloads[T];
  ref?: string | null;
  seq?: number;
  causal_refs?: string[];
  fork?: string | null;
}

export type ReceivedEnvelope = { [T in keyof Payloads]: EnvelopeOf<T> }[keyof Payloads];
"""


def types_text() -> str:
    """The whole file."""
    schemas: dict[str, Schema] = json.loads(openapi.document(""))["components"]["schemas"]
    payloads = sorted(name for name in schemas if is_payload(name))
    objects = sorted(n for n in schemas if n[0].isupper() and n not in ENVELOPES)
    blocks = [declaration(type_name(name), schemas[name]) for name in [*objects, *payloads]]
    rows = "".join(f"  '{name}': {type_name(name)};\n" for name in payloads)
    table = f"/** The payload of each message type. */\nexport interface Payloads {{\n{rows}}}\n"
    return HEAD + "\n" + "\n".join([*blocks, table, ENVELOPE])


def is_payload(name: str) -> bool:
    """Whether this is the payload of a message type, as it is sent and as it is received."""
    return name == ERROR or ("." in name and not name.startswith(SENT_PREFIX))


def type_name(name: str) -> str:
    """`tool.propose` is `ToolPropose`; names of classes stay."""
    return RENAMED.get(name) or "".join(
        word[:1].upper() + word[1:] for word in re.split(r"[._]", name)
    )


def declaration(name: str, schema: Schema) -> str:
    text = " ".join(schema.get("description", "").split()).replace("*/", "* /")
    comment = f"/** {text} */\n" if text else ""
    if schema.get("type") == "object" and schema.get("properties"):
        return f"{comment}export interface {name} {fields(schema)}\n"
    return f"{comment}export type {name} = {type_of(schema)};\n"


def fields(schema: Schema, indent: str = "") -> str:
    required = set(schema.get("required", ()))
    rows = "".join(
        f"{indent}  {key(name)}{'' if name in required else '?'}: {type_of(part, indent + '  ')};\n"
        for name, part in schema["properties"].items()
    )
    return f"{{\n{rows}{indent}}}" if rows else "Record<string, never>"


def key(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) else f"'{name}'"


def type_of(schema: Schema, indent: str = "") -> str:
    if not schema:
        return "unknown"
    if ref := schema.get("$ref"):
        return type_name(ref.rpartition("/")[2])
    if "const" in schema:
        return literal(schema["const"])
    if "enum" in schema:
        return " | ".join(literal(value) for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " | ".join(dict.fromkeys(type_of(part, indent) for part in schema[word]))
    if "allOf" in schema:
        return " & ".join(type_of(part, indent) for part in schema["allOf"])
    return plain_type(schema, indent)


def plain_type(schema: Schema, indent: str) -> str:
    """The type of a schema that neither refers to others nor chooses among them."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(PRIMITIVES.get(each, "unknown") for each in kind)
    if kind == "array":
        item = type_of(schema.get("items", {}), indent)
        return f"({item})[]" if " " in item and "{" not in item else f"{item}[]"
    if kind == "object":
        if schema.get("properties"):
            return fields(schema, indent)
        extra = schema.get("additionalProperties")
        value = type_of(extra, indent) if isinstance(extra, dict) else "unknown"
        return f"Record<string, {value}>"
    return PRIMITIVES.get(str(kind), "unknown")


def literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)
