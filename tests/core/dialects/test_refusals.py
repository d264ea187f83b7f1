"""One refusal, rendered in each dialect."""

import msgspec
import pytest

from accord.core.dialects import pvp
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.dialects.refusals import (
    JSON_HEADERS,
    Problem,
    exit_refusal,
    http_refusal,
    pvp_error,
)
from accord.core.kernel.refusal import Reason, Refused

SENTENCE = "The gate is closed; propose again"


@pytest.mark.parametrize("reason", Reason)
def test_every_dialect_says_the_same_sentence_with_its_own_code(reason: Reason) -> None:
    codes, refusal = ERROR_CODES[reason], Refused(reason, SENTENCE)

    assert pvp_error(refusal, "m1") == Problem(
        codes.pvp, SENTENCE, codes.recoverable, related_to="m1"
    )
    for code_set, code in (("pvp", codes.pvp), ("msg", codes.msg)):
        rendered = http_refusal(refusal, code_set)  # type: ignore[arg-type]  # of the pairs above
        assert rendered.status == codes.http
        assert rendered.body == {"error": {"code": code, "message": SENTENCE, "details": {}}}
    assert exit_refusal(refusal) == (codes.exit, SENTENCE)


def test_details_reach_programs_in_pvp_and_http() -> None:
    refusal = Refused(Reason.NOT_FOUND, SENTENCE, {"unknown": ["m1"]})

    assert pvp_error(refusal).details == {"unknown": ["m1"]}
    assert http_refusal(refusal).body["error"]["details"] == {"unknown": ["m1"]}


def test_envelope_of_an_error_carries_the_same_payload() -> None:
    refusal = Refused(Reason.TOO_MANY, SENTENCE, {"retry_after_ms": 5})
    frame = msgspec.json.decode(pvp.encode_refusal("e1", 0, "s", refusal, "m1"))

    assert frame["payload"] == msgspec.to_builtins(pvp_error(refusal, "m1"))
    assert (frame["type"], frame["ref"]) == ("error", "m1")


@pytest.mark.parametrize(
    ("refusal", "headers"),
    [
        (Refused(Reason.FORBIDDEN, SENTENCE), {}),
        (Refused(Reason.UNAUTHENTICATED, SENTENCE), {"www-authenticate": "Bearer"}),
        (Refused(Reason.TOO_MANY, SENTENCE, {"retry_after_ms": 1001}), {"retry-after": "2"}),
        (Refused(Reason.TOO_MANY, SENTENCE, {"limit": "queue"}), {}),
        (Refused(Reason.TOO_LARGE, SENTENCE), {"connection": "close"}),
        (Refused(Reason.TIMED_OUT, SENTENCE), {"connection": "close"}),
    ],
)
def test_refusal_headers_say_when_or_how_to_retry(
    refusal: Refused, headers: dict[str, str]
) -> None:
    assert http_refusal(refusal).headers == JSON_HEADERS | headers
