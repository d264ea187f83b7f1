"""Signing in: codes are good once, proofs are good once, revoked devices get nothing."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.context import CONTEXT
from accord.core.people.device_proofs import ProofStatement, host_of
from accord.core.people.devices import (
    BROWSER_TOKEN_LIFE_S,
    DEVICE_TOKEN_LIFE_S,
    MAX_DEVICES_PER_PRINCIPAL,
    MAX_PROOFS_IN_WINDOW,
    PROOF_WINDOW_MS,
    SAME_TOKEN_MS,
    DeviceAdded,
    DeviceRenew,
    DeviceRenewed,
    DeviceRevoke,
    DeviceRevoked,
)
from accord.core.people.removal import PersonRemove, PersonRemoved
from accord.core.people.sign_in import SignIn
from accord.core.people.sign_in_codes import (
    CODE_LIFE_MS,
    INVITATION_LIFE_MS,
    MAX_OPEN_CODES,
    CodeIssue,
    CodeIssued,
    CodeRevoke,
    CodeRevoked,
    CodesExpired,
    CodeUsed,
)
from accord.core.people.signing_keys import KeyRotated
from accord.core.people.state import Device, SignInCode, swept_at
from accord.core.people.tokens import TokenIssued, TokenRevoke, TokenRevoked
from tests.core.people.scenario import (
    BOB,
    FIRST,
    OLGA,
    OTTO,
    ROBOT,
    SECOND,
    T0,
    given,
    then,
    tick,
    token,
    when,
)

SERVER = Actor(principal="system:sign-in", kind=Kind.SYSTEM)
DIGEST = "a" * 64
HOST = "127.0.0.1:7420"


def code(id: str = "C1", **changes: Any) -> SignInCode:
    fields: dict[str, Any] = {
        "id": id,
        "digest": DIGEST,
        "principal": "alice",
        "roles": frozenset({Role.DRIVER}),
        "issued_at": T0,
        "expires_at": T0 + CODE_LIFE_MS,
    }
    return SignInCode(**{**fields, **changes})


def device(id: str = "D1", **changes: Any) -> Device:
    fields: dict[str, Any] = {
        "id": id,
        "principal": "alice",
        "roles": frozenset({Role.DRIVER}),
        "added_at": T0,
        "public_key": "key",
        "address": HOST,
    }
    return Device(**{**fields, **changes})


def sign_in(**changes: Any) -> SignIn:
    fields: dict[str, Any] = {
        "digest": DIGEST,
        "device": "D1",
        "jti": "J1",
        "key": "K1",
        "now": T0,
        "public_key": "key",
        "address": HOST,
    }
    return SignIn(**{**fields, **changes})


def renewal(nonce: str = "n" * 16, **changes: Any) -> DeviceRenew:
    fields: dict[str, Any] = {
        "device": "D1",
        "address": HOST,
        "time": T0,
        "nonce": nonce,
        "jti": "J2",
        "key": "K1",
        "now": T0,
    }
    return DeviceRenew(**{**fields, **changes})


def refusal(*events: Event, by: Actor = SERVER, body: Any) -> Refused:
    with pytest.raises(Refused) as no:
        when(given(*events), by, body)
    return no.value


def test_an_operator_issues_a_code_and_the_log_says_who() -> None:
    assert when(given(), OLGA, CodeIssue(code())) == [CodeIssued(code=code(by="olga"))]
    invitation = code(invitation=True, expires_at=T0 + INVITATION_LIFE_MS)
    assert when(given(), OLGA, CodeIssue(invitation))


@pytest.mark.parametrize("actor", [BOB, ROBOT])
@pytest.mark.parametrize("roles", [{Role.DRIVER}, {Role.ADMIN}])
def test_only_a_human_with_an_admin_token_invites(actor: Actor, roles: set[Role]) -> None:
    no = refusal(by=actor, body=CodeIssue(code(roles=frozenset(roles))))

    assert no.reason is Reason.FORBIDDEN


def test_an_operator_of_another_workspace_invites_nobody_here() -> None:
    assert refusal(by=OTTO, body=CodeIssue(code())).reason is Reason.FORBIDDEN


@pytest.mark.parametrize(
    "bad",
    [
        code(principal="system"),
        code(roles=frozenset()),
        code(expires_at=T0 + CODE_LIFE_MS + 1),
        code(expires_at=T0),
        code(invitation=True, expires_at=T0 + INVITATION_LIFE_MS + 1),
    ],
)
def test_a_code_for_nobody_for_nothing_or_for_too_long_is_refused(bad: SignInCode) -> None:
    assert refusal(by=OLGA, body=CodeIssue(bad)).reason is Reason.MALFORMED


def test_ids_and_hashes_of_codes_are_unique_and_their_number_is_bounded() -> None:
    known = CodeIssued(code=code())
    for again in (code(digest="b" * 64), code("C2")):
        assert refusal(known, by=OLGA, body=CodeIssue(again)).reason is Reason.KEY_REUSED
    many = (
        CodeIssued(code=code(f"C{count}", digest=f"{count:064x}"))
        for count in range(MAX_OPEN_CODES)
    )
    assert refusal(*many, by=OLGA, body=CodeIssue(code("X"))).reason is Reason.TOO_MANY


def test_a_code_is_burned_by_its_first_use() -> None:
    people = given(CodeIssued(code=code(name="Alice")))

    facts = when(people, SERVER, sign_in())

    used, added, issued = facts
    assert used == CodeUsed(id="C1")
    assert added == DeviceAdded(device=device(name="Alice"))
    assert isinstance(issued, TokenIssued)
    assert (issued.token.device, issued.token.id, issued.token.key) == ("D1", "alice", "K1")
    assert issued.token.expires_at - issued.token.issued_at == DEVICE_TOKEN_LIFE_S * 1000
    with pytest.raises(Refused, match="used, has expired or was revoked"):
        when(then(people, facts), SERVER, sign_in(device="D2", jti="J2"))


def test_a_browser_gets_a_longer_token_because_it_has_no_key() -> None:
    *_, issued = when(given(CodeIssued(code=code())), SERVER, sign_in(public_key=""))

    assert isinstance(issued, TokenIssued)
    assert issued.token.expires_at - issued.token.issued_at == BROWSER_TOKEN_LIFE_S * 1000


@pytest.mark.parametrize(
    ("events", "body"),
    [
        ([], sign_in()),
        ([CodeIssued(code=code())], sign_in(digest="b" * 64)),
        ([CodeIssued(code=code())], sign_in(now=T0 + CODE_LIFE_MS)),
        ([CodeIssued(code=code()), CodeRevoked(id="C1")], sign_in()),
    ],
)
def test_a_wrong_expired_or_revoked_code_opens_nothing(events: list[Event], body: SignIn) -> None:
    assert refusal(*events, body=body).reason is Reason.UNAUTHENTICATED


def test_ids_that_are_in_use_and_too_many_devices_are_refused() -> None:
    issued = CodeIssued(code=code())
    taken = refusal(issued, DeviceAdded(device=device()), body=sign_in())
    assert taken.reason is Reason.KEY_REUSED
    assert refusal(issued, TokenIssued(token=token()), body=sign_in()).reason is Reason.KEY_REUSED
    many = [DeviceAdded(device=device(f"X{n}")) for n in range(MAX_DEVICES_PER_PRINCIPAL)]
    assert refusal(issued, *many, body=sign_in()).reason is Reason.TOO_MANY
    elsewhere = [
        DeviceAdded(device=device(f"X{n}", workspace="other"))
        for n in range(MAX_DEVICES_PER_PRINCIPAL)
    ]
    assert when(given(issued, *elsewhere), SERVER, sign_in())


def test_an_operator_revokes_an_invitation_that_was_not_used() -> None:
    people = given(CodeIssued(code=code()))

    assert when(people, OLGA, CodeRevoke("C1", "typo")) == [CodeRevoked(id="C1", reason="typo")]
    assert refusal(by=OLGA, body=CodeRevoke("C1")).reason is Reason.NOT_FOUND
    no = refusal(CodeIssued(code=code()), by=OTTO, body=CodeRevoke("C1"))
    assert no.reason is Reason.NOT_FOUND


def test_unused_codes_are_swept() -> None:
    people = given(CodeIssued(code=code()))
    due = swept_at(T0 + CODE_LIFE_MS)

    assert due in CONTEXT.deadlines(people, None)
    assert tick(people, due - 1) == []
    assert tick(people, due) == [CodesExpired(ids=("C1",))]
    assert then(people, tick(people, due)).codes == {}


def test_a_proof_gets_a_new_token_and_a_second_one_within_a_minute_the_same() -> None:
    people = given(DeviceAdded(device=device()))

    first = when(people, SERVER, renewal())
    issued, renewed = first
    assert isinstance(issued, TokenIssued)
    assert renewed == DeviceRenewed(device="D1", jti="J2", nonce="n" * 16, time=T0, now=T0)
    people = then(people, first)
    later = T0 + SAME_TOKEN_MS - 1
    again = when(people, SERVER, renewal("m" * 16, jti="J3", now=later, time=later))
    assert [type(event) for event in again] == [DeviceRenewed]
    people = then(people, again)
    assert people.renewals["D1"].jti == "J2"
    assert people.renewals["D1"].given_at == T0
    late = T0 + SAME_TOKEN_MS
    fresh = when(people, SERVER, renewal("o" * 16, jti="J4", now=late, time=late))
    assert isinstance(fresh[0], TokenIssued)
    assert then(people, fresh).renewals["D1"].jti == "J4"


def test_a_revoked_token_or_one_of_an_older_key_is_not_given_again() -> None:
    people = given(DeviceAdded(device=device()))
    people = then(people, when(people, SERVER, renewal()))
    rotated = when(people, SERVER, renewal("m" * 16, jti="J3", key="K2"))
    assert isinstance(rotated[0], TokenIssued)
    people = then(people, [TokenRevoked(jti="J2")])
    assert isinstance(when(people, SERVER, renewal("m" * 16, jti="J3"))[0], TokenIssued)


def test_a_proof_is_good_once() -> None:
    people = given(DeviceAdded(device=device()))
    people = then(people, when(people, SERVER, renewal()))

    with pytest.raises(Refused, match="used before"):
        when(people, SERVER, renewal())
    # When it would no longer be refused as used, its time has passed.
    with pytest.raises(Refused, match="more than 60 s off"):
        when(people, SERVER, renewal(now=T0 + PROOF_WINDOW_MS + 1))


@pytest.mark.parametrize("off", [-PROOF_WINDOW_MS - 1, PROOF_WINDOW_MS + 1])
def test_a_proof_of_another_time_is_refused(off: int) -> None:
    no = refusal(DeviceAdded(device=device()), body=renewal(now=T0 + off))

    assert no.reason is Reason.UNAUTHENTICATED


def test_a_proof_for_another_server_is_refused() -> None:
    no = refusal(DeviceAdded(device=device()), body=renewal(address="evil.example"))

    assert no.reason is Reason.UNAUTHENTICATED
    assert "evil.example" in no.detail


@pytest.mark.parametrize(
    "events",
    [
        [],
        [DeviceAdded(device=device(public_key=""))],
        [DeviceAdded(device=device()), DeviceRevoked(id="D1")],
    ],
)
def test_an_unknown_or_revoked_device_and_a_browser_renew_nothing(events: list[Event]) -> None:
    assert refusal(*events, body=renewal()).reason is Reason.UNAUTHENTICATED


def test_proofs_are_counted_within_their_window_only() -> None:
    people = given(DeviceAdded(device=device()))
    for count in range(MAX_PROOFS_IN_WINDOW):
        people = then(people, when(people, SERVER, renewal(f"{count:016}")))

    with pytest.raises(Refused) as no:
        when(people, SERVER, renewal())
    assert no.value.reason is Reason.TOO_MANY
    later = T0 + PROOF_WINDOW_MS + 1
    people = then(people, when(people, SERVER, renewal(time=later, now=later)))
    assert len(people.renewals["D1"].nonces) == 1


def signed_in() -> list[Event]:
    return [
        DeviceAdded(device=device()),
        TokenIssued(token=token("J1", device="D1")),
        TokenIssued(token=token("J2", device="D1")),
        TokenIssued(token=token("J3", device="D2")),
        DeviceAdded(device=device("D2")),
        DeviceRenewed(device="D1", jti="J2", nonce="n" * 16, time=T0, now=T0),
    ]


ALICE = Actor(principal="alice", kind=Kind.HUMAN)
ENDS = [
    TokenRevoked(jti="J1", expires_at=token().expires_at),
    TokenRevoked(jti="J2", expires_at=token().expires_at),
    DeviceRevoked(id="D1"),
]


@pytest.mark.parametrize("actor", [OLGA, ALICE])
def test_a_device_is_revoked_with_its_tokens_by_its_owner_or_an_operator(actor: Actor) -> None:
    people = given(*signed_in())

    facts = when(people, actor, DeviceRevoke("D1"))

    assert facts == ENDS
    assert set(then(people, facts).devices) == {"D2"}
    assert then(people, facts).renewals == {}


@pytest.mark.parametrize("actor", [BOB, OTTO, ROBOT])
def test_for_everyone_else_there_is_no_such_device(actor: Actor) -> None:
    assert refusal(*signed_in(), by=actor, body=DeviceRevoke("D1")).reason is Reason.NOT_FOUND
    assert refusal(by=actor, body=DeviceRevoke("D1")).reason is Reason.NOT_FOUND


def test_revoking_a_token_of_a_device_revokes_the_device() -> None:
    people = given(*signed_in())

    assert when(people, OLGA, TokenRevoke("J1")) == ENDS
    assert when(then(people, ENDS), OLGA, TokenRevoke("J1")) == []
    plain = given(TokenIssued(token=token("J9")))
    assert [type(each) for each in when(plain, OLGA, TokenRevoke("J9"))] == [TokenRevoked]


def test_removing_a_person_ends_everything_that_lets_them_in() -> None:
    bobs = code("C9", digest="9" * 64, principal="carol", by="alice")
    people = given(
        *signed_in(),
        TokenIssued(token=token("JB", id="bob")),
        TokenIssued(token=token("J0")),
        TokenRevoked(jti="J0"),
        DeviceAdded(device=device("DB", principal="bob")),
        CodeIssued(code=code()),
        CodeIssued(code=bobs),
        CodeIssued(code=code("CB", digest="8" * 64, principal="bob", by="olga")),
    )

    facts = when(people, OLGA, PersonRemove(id="alice", workspace="default", reason="left"))

    assert [each.jti for each in facts if isinstance(each, TokenRevoked)] == ["J1", "J2", "J3"]
    assert [each.id for each in facts if isinstance(each, DeviceRevoked)] == ["D1", "D2"]
    assert [each.id for each in facts if isinstance(each, CodeRevoked)] == ["C1", "C9"]
    assert facts[-1] == PersonRemoved(id="alice", workspace="default", reason="left")
    after = then(people, facts)
    assert (set(after.devices), set(after.codes)) == ({"DB"}, {"CB"})


def test_nobody_removes_themselves_a_stranger_or_somebody_elsewhere() -> None:
    remove = PersonRemove(id="alice", workspace="default")
    assert refusal(by=OLGA, body=remove).reason is Reason.NOT_FOUND
    assert refusal(*signed_in(), by=BOB, body=remove).reason is Reason.FORBIDDEN
    assert refusal(*signed_in(), by=OTTO, body=remove).reason is Reason.FORBIDDEN
    own = PersonRemove(id="olga", workspace="default")
    assert refusal(by=OLGA, body=own).reason is Reason.WRONG_STATE
    inside = PersonRemove(id="zoe", workspace="default", sessions=1)
    assert when(given(), OLGA, inside) == [PersonRemoved(id="zoe", workspace="default")]


def test_the_server_keeps_its_id_when_its_key_changes() -> None:
    assert given().server_id == ""
    assert given(KeyRotated(key=FIRST)).server_id == "K1"
    assert given(KeyRotated(key=FIRST), KeyRotated(key=SECOND)).server_id == "K1"


def test_a_proof_is_made_of_its_fields_and_names_the_host() -> None:
    statement = ProofStatement("http://A:1", "D1", 5, "n")

    assert statement.to_bytes() == b"accord-sign-in-v1\nhttp://A:1\nD1\n5\nn"
    assert host_of("http://A:1/x") == "a:1"
    assert host_of("ftp://a") == ""
    assert host_of("http://[") == ""
