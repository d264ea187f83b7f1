"""The error envelope of MSG."""

import pytest

from accord.core.dialects.msg import is_method_path, method_refusal
from accord.core.kernel.refusal import Reason, Refused
from tests.spec import proves


@proves("MSG-6-1", "MSG-6-2", "MSG-6-5", "MSG-6-8", "MSG-6-12")
@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [
        (Reason.UNAUTHENTICATED, 401, "UNAUTHORIZED"),
        (Reason.FORBIDDEN, 403, "FORBIDDEN"),
        (Reason.OUT_OF_SCOPE, 403, "OUT_OF_SCOPE_WORKSPACE"),
        (Reason.NO_ROOM, 404, "NOT_FOUND"),
        (Reason.WRONG_STATE, 409, "CONFLICT"),
        (Reason.KEY_REUSED, 409, "IDEMPOTENCY_CONFLICT"),
        (Reason.TOO_MANY, 429, "RATE_LIMITED"),
        (Reason.MALFORMED, 400, "VALIDATION_ERROR"),
        (Reason.CLAIM_MISMATCH, 403, "CLAIM_MISMATCH"),
        (Reason.NO_AUTHORITY, 403, "INSUFFICIENT_AUTHORITY"),
    ],
)
def test_a_refusal_has_the_status_and_code_of_its_reason(
    reason: Reason, status: int, code: str
) -> None:
    refused = method_refusal(Refused(reason, "No."), "req_1")
    assert refused.status == status
    assert refused.body == {"error": {"code": code, "message": "No.", "request_id": "req_1"}}
    assert refused.headers["x-request-id"] == "req_1"


def test_details_and_the_time_to_wait_are_told() -> None:
    refused = method_refusal(Refused(Reason.TOO_MANY, "Wait.", {"retry_after_ms": 1500}), "req_1")
    assert refused.body["error"]["details"] == {"retry_after_ms": 1500}
    assert refused.headers["retry-after"] == "2"


@proves("MSG-1.2-1", "MSG-9-1")
def test_everything_under_v1_is_answered_in_the_envelope() -> None:
    assert all(map(is_method_path, ("/v1", "/v1/", "/v1/post_message", "/v1/a/b")))
    assert not any(map(is_method_path, ("/", "/v11", "/v10/x", "/sessions/v1")))
