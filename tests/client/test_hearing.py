"""What a client makes of what it hears, expected or not."""

import pytest

from accord.client import Envelope, ServerRefused, Unreachable
from accord.core.room.members import SessionJoin
from accord.core.room.notices import ErrorReport
from accord.core.room.participants import ParticipantAnnounce
from tests.client.scripted import Guest, guest, scripted
from tests.client.test_link import HELLO
from tests.spec import proves

END = {"type": "session.end", "payload": {"reason": "done", "final_state": "completed"}}


def announced(id: str, **more: object) -> dict[str, object]:
    """An announcement as it stands in a frame."""
    who = {"id": "bob", "name": "Bob", "type": "human", "roles": ["driver"], "transport": "http"}
    return {"id": id, "type": "participant.announce", "payload": who, **more}


async def everything(url: str) -> list[Envelope]:
    """All that is heard in a session until it ends."""
    async with guest(url) as client:
        session = await client.join("s")
        return [envelope async for envelope in session.messages()]


@proves("OPEN-2")
async def test_types_it_does_not_know_are_passed_over() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        await guest.say(id="new", type="dance.start", payload={"tempo": 120}, seq=2)
        await guest.say(id="odd", type="prompt.submit", payload={"content": 7}, seq=3)
        await guest.say(id="end", seq=4, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    assert [each.type for each in heard] == ["session.join", "session.end"]


@proves("OPEN-2")
async def test_what_it_does_not_know_counts_as_seen() -> None:
    refs = []

    async def script(guest: Guest) -> None:
        refs.append((await guest.let_in(seq=10 * guest.number)).get("ref"))
        if guest.number == 1:
            await guest.say(id="new", type="dance.start", payload={}, seq=11)
        else:
            await guest.say(id="end", seq=99, **END)

    async with scripted(script) as url:
        await everything(url)

    assert refs == [None, "new"]


@proves("PVP-17-13")
async def test_noise_and_errors_do_not_disturb_it() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in()
        for noise in ("", "{", "null", "[]", "\ud7ff", '{"id":1}', '{"type":"error"}'):
            await guest.connection.send(noise)
        await guest.connection.send(b"\xff\xfe")
        await guest.say(id="e1", type="error", session="", payload={})
        await guest.say(id="e2", type="error", session="nowhere", payload={"code": 3})
        problem = {"code": "NEW_CODE", "message": "Unheard of", "recoverable": False}
        await guest.say(id="e3", type="error", payload={**problem, "related_to": "nothing"})
        await guest.say(id="end", seq=2, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    (error,) = [each.body for each in heard if isinstance(each.body, ErrorReport)]
    assert (error.code, error.message, error.recoverable) == ("NEW_CODE", "Unheard of", False)
    assert heard[-1].type == "session.end"


@proves("PVP-19.5-2", "OPEN-36")
async def test_repeats_are_dropped_by_place_and_by_id() -> None:
    async def script(guest: Guest) -> None:
        join = await guest.let_in(seq=1)
        await guest.echo(join, seq=1)
        await guest.say(**announced("a", seq=2))
        await guest.say(**announced("a", seq=2))
        await guest.say(**announced("b"))
        await guest.say(**announced("b"))
        problem = {"code": "GATE_FAILED", "message": "No", "recoverable": True}
        await guest.say(id="e", type="error", payload=problem)
        await guest.say(id="e", type="error", payload=problem)
        await guest.say(id="end", seq=3, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    assert [each.id for each in heard][1:] == ["a", "b", "e", "end"]


@proves("OPEN-30")
async def test_the_roll_call_is_news_only_once() -> None:
    """A joiner gets it again on each return, with ids long since heard in their places."""

    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in(seq=1)
            await guest.say(**announced("a", seq=2))
        else:
            join = await guest.hear()
            await guest.say(**announced("a"))
            await guest.say(**announced("b"))
            await guest.say(**announced("b", seq=3))
            await guest.echo(join, seq=4)
            await guest.say(id="end", seq=5, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    assert [each.id for each in heard if isinstance(each.body, ParticipantAnnounce)] == ["a", "b"]


@proves("OPEN-37")
async def test_it_says_what_it_saw_last_and_hears_the_rest() -> None:
    refs = []

    async def script(guest: Guest) -> None:
        join = await guest.hear()
        refs.append(join.get("ref"))
        if guest.number == 1:
            await guest.say(**announced("a", seq=1))
            await guest.echo(join, seq=2)
            await guest.say(**announced("b", seq=5))
            await guest.say(**announced("signal"))
        else:
            await guest.say(**announced("c", seq=6))
            await guest.echo(join, seq=7)
            await guest.say(id="end", seq=8, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    assert refs == [None, "b"]
    assert [each.seq for each in heard if each.seq] == [1, 2, 5, 6, 7, 8]


async def test_a_leave_from_before_the_return_is_old_news() -> None:
    """OPEN-32: away for longer than the grace period, then back."""

    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in(seq=1)
            return
        join = await guest.hear()
        left = {"reason": "Connection lost", "participant": "alice"}
        await guest.say(id="left", type="session.leave", payload=left, seq=2)
        await guest.echo(join, seq=3)
        await guest.echo(await guest.hear(), seq=4)
        await guest.say(id="gone", type="session.leave", payload=left, seq=5)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")
        assert (await session.send(HELLO)).seq == 4

        heard = [envelope async for envelope in session.messages()]

    assert [each.id for each in heard if each.type == "session.leave"] == ["left", "gone"]
    assert len([each for each in heard if isinstance(each.body, SessionJoin)]) == 2


@proves("PVP-19.5-4")
async def test_a_lost_connection_is_heard_as_an_error() -> None:
    async def script(guest: Guest) -> None:
        await guest.let_in(seq=guest.number)
        if guest.number == 1:
            await guest.connection.close(1012, "the server stops")
        else:
            await guest.say(id="end", seq=3, **END)

    async with scripted(script) as url:
        heard = await everything(url)

    assert [each.type for each in heard] == ["session.join", "error", "session.join", "session.end"]
    error = heard[1].body
    assert isinstance(error, ErrorReport)
    assert (error.code, error.recoverable) == ("TRANSPORT_ERROR", False)
    assert error.message == "The connection was lost: the server stops"


@pytest.mark.parametrize("code", ["SESSION_NOT_FOUND", "UNAUTHORIZED", "INVALID_MESSAGE"])
async def test_who_is_not_let_in_again_is_told(code: str) -> None:
    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in()
            return
        await guest.refuse(await guest.hear(), code)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        with pytest.raises(ServerRefused, match="No") as refused:
            async for _ in session.messages():
                pass
        assert refused.value.code == code
        with pytest.raises(ServerRefused):
            await session.send(HELLO)


async def test_who_cannot_read_how_a_session_ended_is_told() -> None:
    """It ended meanwhile, and the archive does not answer."""

    async def script(guest: Guest) -> None:
        if guest.number == 1:
            await guest.let_in()
            return
        await guest.refuse(await guest.hear(), "INVALID_STATE", recoverable=False)
        await guest.connection.wait_closed()

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        with pytest.raises(Unreachable):
            async for _ in session.messages():
                pass


@pytest.mark.parametrize("code", ["RATE_LIMITED", "INTERNAL_ERROR"])
async def test_a_return_that_fails_for_now_is_tried_again(code: str) -> None:
    async def script(guest: Guest) -> None:
        if guest.number in {2, 3}:
            await guest.refuse(await guest.hear(), code)
            await guest.connection.wait_closed()
            return
        await guest.let_in(seq=guest.number)
        if guest.number == 4:
            await guest.echo(await guest.hear(), seq=10)

    async with scripted(script) as url, guest(url) as client:
        session = await client.join("s")

        assert (await session.send(HELLO)).seq == 10
