"""JSON Schemas of tools, as short as they can be: models read them at every start."""

from typing import Any

import msgspec
from msgspec import Struct

Schema = dict[str, Any]
# Lengths are generous and checked anyway; titles repeat names.
DROPPED_KEYS = frozenset({"title", "minLength", "maxLength"})
NULL = {"type": "null"}


def argument_schema(type: type[Struct], hidden: frozenset[str] = frozenset()) -> Schema:
    """The schema of a tool's arguments; struct docstrings are for readers of the source."""
    schema = _root(type, with_docs=True)
    required = frozenset(schema.get("required", ()))
    definitions = schema.pop("$defs", {})
    schema["properties"] = {
        name: _inlined(value, definitions)
        for name, value in schema["properties"].items()
        if name not in hidden or name in required
    }
    return schema


def result_schema(type: type[Struct]) -> Schema:
    """The schema of a tool's result: the names and types of its fields, one level deep."""
    schema = _root(type, with_docs=False)
    definitions = schema.pop("$defs", {})
    schema["properties"] = {
        name: _shallow(value, definitions) for name, value in schema["properties"].items()
    }
    # Clients check the result of a refused call against this schema too; where it does not fit,
    # some show the model an error of their own in place of ours.
    first = schema.pop("required", [])[:1]
    schema["anyOf"] = [{"required": first}, {"required": ["error"]}]
    return schema


def _root(type: type[Struct], *, with_docs: bool) -> Schema:
    whole = msgspec.json.schema(type)
    definitions = whole["$defs"]
    root = definitions.pop(whole["$ref"].rpartition("/")[2])
    root.pop("description", None)
    schema: Schema = _tidy(root, with_docs=with_docs)
    if definitions:
        schema["$defs"] = {
            name: _tidy({**value, "description": None}, with_docs=with_docs)
            for name, value in definitions.items()
        }
    return schema


def _tidy(value: Any, *, with_docs: bool) -> Any:
    """Without titles; of arguments, without `null` where it means that a field is left out."""
    if isinstance(value, list):
        return [_tidy(item, with_docs=with_docs) for item in value]
    if not isinstance(value, dict):
        return value
    if with_docs:
        value = _without_null(value)
    return {
        key: _tidy_fields(item, with_docs=with_docs)
        if key == "properties"
        else _tidy(item, with_docs=with_docs)
        for key, item in value.items()
        if key not in DROPPED_KEYS
        and not (key == "description" and (item is None or not with_docs))
        and not (key == "default" and (not with_docs or item in (None, "", {})))
        and not (key == "required" and not item)
    }


def _tidy_fields(fields: Schema, *, with_docs: bool) -> Schema:
    """A field may have any name, also that of a keyword."""
    return {name: _tidy(field, with_docs=with_docs) for name, field in fields.items()}


def _without_null(value: Schema) -> Schema:
    options = value.get("anyOf")
    if not isinstance(options, list) or NULL not in options or "default" not in value:
        return value
    others = [option for option in options if option != NULL]
    rest = {key: item for key, item in value.items() if key != "anyOf"}
    return {**rest, **others[0]} if len(others) == 1 else {**rest, "anyOf": others}


def _inlined(value: Schema, definitions: Schema) -> Schema:
    """A field with its definition in place, which is shorter than a reference used once."""
    if "$ref" not in value:
        return value
    rest = {key: item for key, item in value.items() if key != "$ref"}
    return {**definitions[value["$ref"].rpartition("/")[2]], **rest}


def _shallow(value: Schema, definitions: Schema) -> Schema:
    """A field's type; what is inside an object is not repeated."""
    if "$ref" in value:
        return _shallow(definitions[value["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in value:
        options = [_shallow(option, definitions) for option in value["anyOf"]]
        return {"type": [option["type"] for option in options]}
    if "enum" in value:
        return {"type": "string"}
    return {"type": value["type"]} if "type" in value else {}
