"""Secrets: that one was shared is known to some; its value is kept nowhere."""

import json
from collections.abc import Iterable
from contextlib import suppress

import msgspec
import pytest
from hypothesis import assume
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import pvp
from accord.core.dialects.stored_records import encode_record
from accord.core.kernel.actor import POLICY_ACTOR, TIMER_ACTOR, Actor
from accord.core.kernel.effects import DropSecret, HoldSecret
from accord.core.kernel.limits import Limits
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room import CONTEXT
from accord.core.room.deadlines import Tick
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.membership.leaving import MemberLeft
from accord.core.room.membership.presence import PresenceChanged
from accord.core.room.session_lifecycle import SessionEnded
from accord.core.room.shared_context.secrets import (
    SecretRevoke,
    SecretRevoked,
    SecretShare,
    SecretShared,
    parse_instant,
)
from accord.core.room.state import Presence, Room, SharedSecret
from tests.core.dialects.envelopes import QUICK
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    DEFAULT_POLICY,
    OPEN_POLICY,
    STREAM,
    T0,
    CommandOutcome,
    Step,
    after,
    build_command,
    create_step,
    events_of,
    expect_refusal,
    given,
    join_step,
    leave_step,
    presence_step,
    prompt_submit,
    script_step,
    seconds_after_start,
    session_end,
    tick_at,
    tick_step,
    types_of,
    when,
)
from tests.spec import proves

R = Role
VALUE = "mem:hunter2-☃"


def share(*scope: str, key: str = "KEY", value: str = VALUE, **fields: str) -> SecretShare:
    return SecretShare(key=key, scope=scope or ("claude",), value_ref=value, **fields)  # type: ignore[arg-type]


def shared(*scope: str, by: Actor = BOB, **fields: str) -> Step:
    return script_step(by, share(*scope, **fields), id="share")


def revoke(key: str = "KEY", reason: str = "Leaked") -> SecretRevoke:
    return SecretRevoke(key, reason)


def some_room(*script: Step) -> Room:
    """Alice is its admin; Bob and Carol take part, Dave looks on, Claude drives."""
    return given(
        create_step(),
        join_step(BOB, R.DRIVER),
        join_step(CAROL, R.DRIVER),
        join_step(DAVE, R.OBSERVER),
        join_step(CLAUDE, R.DRIVER),
        *script,
    )


def told(facts: CommandOutcome) -> list[tuple[str, frozenset[str] | None]]:
    """What those who had it hear, and who that is."""
    return [(e.said.reason, e.to) for e in events_of(facts) if isinstance(e, SecretRevoked)]


# Sharing


@proves("PVP-10-3", "PVP-20.3-2", "OPEN-42")
def test_a_secret_is_for_its_scope_and_whoever_shared_it() -> None:
    room = some_room()

    facts = when(room, BOB, share("claude"))

    assert facts == [
        SecretShared(said=share("claude", value=""), to=frozenset({"bob", "claude"})),
        HoldSecret("KEY", VALUE),
    ]
    (record,) = facts.records
    assert CONTEXT.presence.audience(after(room, facts), record) == frozenset({"bob", "claude"})
    assert SecretShared.carries_secret


@proves("OPEN-42")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (share("claude", "mallory"), Reason.NO_MEMBER),
        (share(value=""), Reason.MALFORMED),
        (share(expires_at="tomorrow"), Reason.MALFORMED),
        (share(expires_at=to_iso(T0)), Reason.MALFORMED),
        (share(expires_at="2026-01-30T19:59:59Z"), Reason.MALFORMED),
        (share(expires_at="2026-01-30T20:59:59+01:00"), Reason.MALFORMED),
        (share(expires_at="0001-01-01T00:00:00+23:59"), Reason.MALFORMED),
    ],
)
def test_a_secret_is_for_members_and_for_a_time_to_come(body: SecretShare, why: Reason) -> None:
    with expect_refusal(why):
        when(some_room(), BOB, body)


@proves("OPEN-42", "PVP-10-1")
def test_an_empty_scope_is_no_message() -> None:
    payload = {"key": "k", "scope": [], "value_ref": VALUE}
    envelope = json.loads(pvp.encode_notice("m", T0, "r", share()))

    with expect_refusal(Reason.MALFORMED, "scope"):
        pvp.decode(json.dumps(envelope | {"payload": payload}).encode())


def test_a_time_without_an_offset_is_utc() -> None:
    assert parse_instant("2026-01-30T20:00:00") == T0 == parse_instant("2026-01-30T21:00:00+01:00")
    assert parse_instant(None) is None


@QUICK
@for_all(st.integers(0, 253_402_300_799_999))
def test_no_millisecond_is_lost(at: int) -> None:
    assert parse_instant(to_iso(at)) == at


@QUICK
@for_all(st.text() | st.datetimes(timezones=st.timezones()).map(lambda each: each.isoformat()))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with suppress(Refused):
        assert isinstance(parse_instant(text), int)


@proves("OPEN-10")
def test_an_observer_shares_and_revokes_nothing() -> None:
    room = some_room(shared("dave"))

    for body in (share("bob", key="mine"), revoke()):
        with expect_refusal(Reason.FORBIDDEN):
            when(room, DAVE, body)


def test_a_room_holds_only_so_many_secrets() -> None:
    room = some_room(
        *(
            script_step(BOB, share(key=f"k{number}", value="env:K"))
            for number in range(Limits().secrets)
        )
    )

    with expect_refusal(Reason.WRONG_STATE, "256 secrets"):
        when(room, BOB, share(key="more"))
    assert when(room, BOB, share(key="k0"))
    assert when(after(room, when(room, BOB, revoke("k0"))), BOB, share(key="more"))


# The value is nowhere


def leaks(*things: object) -> bool:
    """Whether the value, or much of it, can be read anywhere in these."""
    text = " ".join(
        thing.decode(errors="replace") if isinstance(thing, bytes) else f"{thing!r} {thing!s}"
        for thing in things
    )
    return "hunter2" in text


def kept(records: Iterable[Record]) -> list[bytes]:
    """Everything of a record that is stored or sent to all."""
    return [part for each in map(encode_record, records) for part in (each.body, each.frame or b"")]


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
def test_the_value_is_in_no_record_no_state_no_snapshot_and_no_text() -> None:
    room = some_room()
    ask = build_command(
        BOB, share("claude", secret_type="token", expires_at=to_iso(seconds_after_start(60)))
    )

    facts = when(room, BOB, ask.message.body)
    room = after(room, facts)

    assert not leaks(ask, ask.message, ask.message.body, facts, *facts)
    assert not leaks(facts.records, *kept(facts.records))
    assert not leaks(room, msgspec.json.encode(room), msgspec.msgpack.encode(room))
    assert [fact.value for fact in facts if isinstance(fact, HoldSecret)] == [VALUE]
    assert msgspec.json.decode(msgspec.json.encode(room), type=Room) == room


@proves("PVP-20.3-1", "PVP-10-2")
@QUICK
@for_all(st.text(min_size=6, max_size=60))
def test_whatever_the_value_is_none_of_it_is_kept(value: str) -> None:
    quoted = msgspec.json.encode(value)[1:-1]
    room = some_room()
    same = when(room, BOB, share(value="x" * 6), id="share")
    assume(not any(quoted in part for part in kept(same.records)))
    assume(quoted not in msgspec.json.encode(after(room, same)))  # a word the room has anyway

    facts = when(room, BOB, share(value=value), id="share")
    then = after(room, facts)

    assert not any(quoted in part for part in kept(facts.records))
    assert quoted not in msgspec.json.encode(then)
    assert value not in repr(facts) or value in repr(same)


@proves("PVP-20.3-1")
def test_what_comes_after_it_holds_the_value_no_more_than_itself() -> None:
    room = some_room(shared("claude"))

    for facts in (
        when(room, BOB, revoke()),
        when(room, BOB, share("carol")),
        when(room, CLAUDE, leave_step(CLAUDE).body),
        when(room, ALICE, session_end()),
        when(room, TIMER_ACTOR, Tick(after_restart=True)),
    ):
        assert not leaks(facts, facts.records, *kept(facts.records), after(room, facts))
    assert not leaks(*CONTEXT.presence.replay_for(room, "claude"))


@proves("OPEN-36", "OPEN-42")
def test_a_retry_is_known_although_the_value_was_not_kept() -> None:
    said = share("claude", value="")

    assert share("claude").is_retry_of(said)
    assert share("claude", value="another").is_retry_of(said)
    assert not share("carol").is_retry_of(said)
    assert not share("claude").is_retry_of(revoke())


# Hearing of it later


@proves("PVP-10-3", "UNI-12")
@pytest.mark.parametrize("who", ["alice", "bob", "carol", "dave", "claude", "stranger"])
def test_only_those_who_may_have_it_are_told_when_they_come_back(who: str) -> None:
    room = some_room(shared("claude", "dave"))

    recalled = [
        each for each in CONTEXT.presence.replay_for(room, who) if each.secret_key is not None
    ]

    if who not in {"bob", "claude", "dave"}:
        assert recalled == []
        return
    (again,) = recalled
    assert (again.id, again.sender, again.secret_key) == ("share", "system", "KEY")
    assert again.body == share("claude", "dave", value="")


def test_a_sharer_who_left_gets_it_no_more_and_may_still_revoke_it() -> None:
    room = some_room(shared("claude"), leave_step(CAROL), leave_step(BOB))
    back = given(join_step(BOB, R.DRIVER), join_step(CAROL, R.DRIVER), room=room)

    for who, number in (("bob", 0), ("carol", 0), ("claude", 1)):
        replayed = CONTEXT.presence.replay_for(back, who)
        assert len([each for each in replayed if each.secret_key]) == number
    assert told(when(back, BOB, revoke()))


@proves("OPEN-42")
def test_whoever_leaves_loses_access_for_good() -> None:
    room = some_room(shared("claude", "carol"), leave_step(CAROL))

    assert room.secrets["KEY"].scope == {"claude"}
    back = given(join_step(CAROL, R.DRIVER), room=room)
    assert [each for each in CONTEXT.presence.replay_for(back, "carol") if each.secret_key] == []
    assert told(when(back, BOB, revoke())) == [("Leaked", frozenset({"bob", "claude"}))]


@proves("OPEN-42")
def test_when_the_last_one_who_could_use_it_leaves_it_is_void() -> None:
    room = some_room(shared("claude", "carol"), leave_step(CAROL))

    facts = when(room, CLAUDE, leave_step(CLAUDE).body)

    assert types_of(facts) == [SecretRevoked, DropSecret, MemberLeft, PresenceChanged]
    assert told(facts) == [("claude left", frozenset({"bob", "claude"}))]
    assert after(room, facts).secrets == {}


def test_a_secret_outlives_its_sharer_s_leave() -> None:
    room = some_room(shared("claude"), leave_step(BOB))

    assert [
        each.secret_key for each in CONTEXT.presence.replay_for(room, "claude") if each.secret_key
    ] == ["KEY"]
    assert told(when(room, ALICE, revoke())) == [("Leaked", frozenset({"alice", "bob", "claude"}))]


def test_where_no_secret_is_a_leave_changes_none() -> None:
    assert some_room(leave_step(CAROL)).secrets == {}


# Replacing


@proves("PVP-10-5", "OPEN-42")
def test_its_sharer_may_share_anew_and_who_is_left_out_is_told() -> None:
    room = some_room(shared("claude", "carol"))

    facts = when(room, BOB, share("claude", "alice", value="env:NEW"))

    assert types_of(facts) == [SecretRevoked, SecretShared, HoldSecret]
    assert told(facts) == [("bob shared it again, with others", frozenset({"carol"}))]
    now = after(room, facts).secrets["KEY"]
    assert (now.scope, now.sharer) == (frozenset({"claude", "alice"}), "bob")
    assert facts[-1] == HoldSecret("KEY", "env:NEW")


def test_shared_anew_with_the_same_people_nobody_is_told_of_a_loss() -> None:
    room = some_room(shared("claude"))

    assert types_of(when(room, BOB, share("claude", "carol"))) == [SecretShared, HoldSecret]


@pytest.mark.parametrize("who", [ALICE, CAROL, CLAUDE], ids=lambda who: who.principal)
def test_nobody_else_shares_under_the_same_key_or_learns_whose_it_is(who: Actor) -> None:
    with expect_refusal(Reason.WRONG_STATE, "^KEY is taken; choose another key$"):
        when(some_room(shared("claude")), who, share("bob"))


# The end of it


@proves("PVP-10-5", "OPEN-10", "OPEN-42")
@pytest.mark.parametrize("who", [BOB, ALICE], ids=lambda who: who.principal)
def test_its_sharer_and_an_admin_revoke_it_at_once(who: Actor) -> None:
    room = some_room(shared("claude"))

    facts = when(room, who, revoke())

    assert facts == [
        SecretRevoked(said=revoke(), to=frozenset({"bob", "claude", who.principal})),
        DropSecret("KEY"),
    ]
    room = after(room, facts)
    assert room.secrets == {}
    assert [each for each in CONTEXT.presence.replay_for(room, "claude") if each.secret_key] == []
    with expect_refusal(Reason.NOT_FOUND):
        when(room, who, revoke())


def test_the_server_may_revoke() -> None:
    facts = when(some_room(shared("claude")), POLICY_ACTOR, revoke())

    assert told(facts) == [("Leaked", frozenset({"bob", "claude"}))]


@proves("OPEN-10", "OPEN-42")
def test_who_has_it_cannot_revoke_it_and_for_others_there_is_none() -> None:
    room = some_room(shared("claude"))

    with expect_refusal(Reason.FORBIDDEN, "Only bob or an admin"):
        when(room, CLAUDE, revoke())
    for key in ("KEY", "OTHER"):
        with expect_refusal(Reason.NOT_FOUND, f"^There is no secret {key} here$"):
            when(room, CAROL, revoke(key))


@proves("PVP-10-4", "PVP-20.3-2")
def test_an_expired_secret_is_deleted_when_its_time_comes() -> None:
    at = seconds_after_start(60)
    room = some_room(shared("claude", expires_at=to_iso(at)), shared("carol", key="kept"))

    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == [at]
    assert tick_at(room, at - 1) == []
    facts = tick_at(room, at)
    assert types_of(facts) == [SecretRevoked, DropSecret]
    assert told(facts) == [("It has expired", frozenset({"bob", "claude"}))]
    assert after(room, facts).secrets.keys() == {"kept"}
    assert tick_at(after(room, facts), at) == []


@proves("PVP-10-2", "OPEN-42")
def test_a_restart_forgets_every_value_and_says_so() -> None:
    room = some_room(shared("claude"), shared("carol", key="other", by=ALICE))

    facts = when(room, TIMER_ACTOR, CONTEXT.startup_body or Tick())

    assert [e.said.key for e in events_of(facts) if isinstance(e, SecretRevoked)] == [
        "KEY",
        "other",
    ]
    assert all("restarted" in reason and "again" in reason for reason, _ in told(facts))
    assert [fact for fact in facts if isinstance(fact, DropSecret)] == [
        DropSecret("KEY"),
        DropSecret("other"),
    ]
    assert after(room, facts).secrets == {}


@proves("OPEN-42")
def test_a_secret_ends_with_its_session() -> None:
    room = some_room(shared("claude"))

    facts = when(room, ALICE, session_end())

    assert types_of(facts) == [SecretRevoked, DropSecret, SessionEnded]
    assert told(facts) == [("The session has ended", frozenset({"bob", "claude"}))]
    assert after(room, facts).secrets == {}


def test_nothing_expires_in_a_session_that_is_over() -> None:
    room = some_room(
        shared("claude", expires_at=to_iso(seconds_after_start(60))),
        script_step(ALICE, session_end()),
    )

    assert tick_at(room, seconds_after_start(99)) == []
    assert list(CONTEXT.deadlines(room, DEFAULT_POLICY)) == []


@proves("OPEN-42")
def test_a_fork_takes_no_secret_along_and_none_is_said_in_it() -> None:
    fork = ForkCreate("Try", "prompt", "To see", ("claude",), copy_context=True)
    room = some_room(
        shared("carol"), script_step(BOB, prompt_submit(), id="prompt"), script_step(ALICE, fork)
    )

    assert room.secrets["KEY"].scope == {"carol"}
    assert [each for each in CONTEXT.presence.replay_for(room, "claude") if each.secret_key] == []
    for body in (share("claude", key="more"), revoke()):
        with expect_refusal(Reason.MALFORMED, "whole session"):
            when(room, ALICE, body, fork="try")


def test_a_grace_period_that_ends_a_membership_takes_access_away_like_a_leave() -> None:
    gone = presence_step(CLAUDE, Presence.DISCONNECTED)
    room = some_room(shared("claude"), gone)

    room = given(tick_step(seconds_after_start(301)), room=room, policy=OPEN_POLICY)

    assert "claude" not in room.members
    assert room.secrets == {}


def test_a_log_that_revokes_what_is_not_there_still_folds() -> None:
    room = some_room()
    (record,) = when(some_room(shared("claude")), BOB, revoke()).records

    assert CONTEXT.evolve[SecretRevoked](room, record.event, record) == room
    assert record.stream == STREAM


def test_what_the_room_knows_of_a_secret_is_all_but_its_value() -> None:
    room = some_room(shared("claude", secret_type="token"))

    assert room.secrets["KEY"] == SharedSecret(
        key="KEY",
        scope=frozenset({"claude"}),
        sharer="bob",
        announced="share",
        said={"key": "KEY", "scope": ["claude"], "value_ref": "", "secret_type": "token"},
    )
