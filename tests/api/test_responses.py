"""One declaration of each response serves the server's description and the client's decoder."""

import json

import msgspec
import pytest

from accord.api import responses, tokens
from accord.transports.http.api_docs import openapi

SUMMARY = {
    "id": "s",
    "name": "Plan",
    "status": "active",
    "created_at": "2026-01-01T00:00:00.000Z",
    "created_by": "alice",
    "participants": 1,
    "open_gates": 0,
    "held": 0,
    "standing": "member",
    "lost": False,
}


def test_client_ignores_fields_of_a_newer_server() -> None:
    sent = {"sessions": [SUMMARY | {"mood": "good"}], "has_more": False, "total": 1}

    page = msgspec.json.decode(json.dumps(sent), type=responses.SessionList)

    assert [line.id for line in page.sessions] == ["s"]


@pytest.mark.parametrize("name", sorted(SUMMARY))
def test_client_refuses_a_response_that_lacks_a_field(name: str) -> None:
    sent = {key: value for key, value in SUMMARY.items() if key != name}

    with pytest.raises(msgspec.ValidationError, match=name):
        msgspec.json.decode(json.dumps(sent), type=responses.SessionSummary)


def test_messages_stay_encoded_for_the_dialect_to_decode() -> None:
    page = msgspec.json.decode(
        b'{"messages":[{"id": 1}],"next":3,"has_more":true}', type=responses.TranscriptPage
    )

    assert [bytes(raw) for raw in page.messages] == [b'{"id": 1}']


def test_openapi_describes_every_response_object_as_closed() -> None:
    schemas = json.loads(openapi.document("1"))["components"]["schemas"]
    described = openapi.RESPONSE_OBJECTS - {responses.ResponseObject.__name__}

    assert described >= {"SessionDetail", "ErrorResponse", tokens.TokenList.__name__}
    assert [name for name in described if schemas[name]["additionalProperties"] is not False] == []


def test_openapi_refers_to_the_schema_of_pvp_for_messages() -> None:
    schemas = json.loads(openapi.document("1"))["components"]["schemas"]
    items = schemas["TranscriptPage"]["properties"]["messages"]["items"]

    assert items["$ref"].rpartition("/")[2] == responses.RECEIVED_ENVELOPE
    assert responses.RECEIVED_ENVELOPE in schemas
