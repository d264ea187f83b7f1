"""`accord session join` and `leave`, and what `log --follow` does when a membership ends."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.helpers.clients.cli import UserShell, clean_environment


def test_joining_says_what_a_shell_does_and_lasts(
    session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "approver")

    said = " ".join(bob.output_of("session", "join", session).split())

    assert said.startswith("You are a member of Fix the parser now, as approver.")
    assert "You stay a member when this shell closes" in said
    assert bob("session", "show", session, "--json").json["standing"] == "member"


def test_roles_can_be_asked_for(session: str, shell: Callable[..., UserShell]) -> None:
    bob = shell("bob", "approver", "driver")

    told = bob("session", "join", session, "--roles", "driver", "--json").json

    assert (told["standing"], told["roles"]) == ("member", ["driver"])


def test_leaving_ends_the_membership_and_says_how_to_come_back(
    session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)

    said = bob.output_of("session", "leave", session, "--reason", "Lunch")

    assert said.startswith("You have left Fix the parser.")
    assert f"accord session join {session}" in " ".join(said.split())
    assert bob("session", "show", session, "--json").json["standing"] == "former"
    assert bob("session", "leave", session).code == 4


def test_an_admin_removes_a_member_who_then_cannot_join(
    session: str, shell: Callable[..., UserShell], alice: UserShell
) -> None:
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)

    said = " ".join(
        alice.output_of("session", "remove", session, "bob", "--reason", "Gone").split()
    )

    assert said.startswith("bob is no longer a member of Fix the parser. Their approvals in open")
    assert bob("session", "show", session, "--json").json["standing"] == "former"
    again = bob("session", "join", session)
    assert again.code == 3
    assert "alice removed" in again.err
    assert alice("session", "remove", session, "bob").code != 0


def test_a_removed_member_is_let_back_in_by_someone_who_may_manage(
    session: str, shell: Callable[..., UserShell], alice: UserShell
) -> None:
    bob, carol = shell("bob", "approver"), shell("carol", "driver")
    for who in (bob, carol):
        who.output_of("session", "join", session)
    alice.output_of("session", "remove", session, "bob")

    refused = carol("session", "readmit", session, "bob", "--roles", "approver")
    assert (refused.code, "may not send participant.role_change" in refused.err) == (3, True)
    assert bob("session", "join", session).code == 3

    said = " ".join(
        alice.output_of("session", "readmit", session, "bob", "--roles", "approver").split()
    )

    assert said.startswith("bob may join Fix the parser again, as approver. They are not a member")
    assert f"`accord session join {session}` makes them one" in said
    assert bob("session", "join", session, "--json").json["roles"] == ["approver"]
    member = alice("session", "readmit", session, "bob", "--roles", "driver")
    assert (member.code, "bob is a member of Fix the parser" in member.err) == (5, True)
    stranger = alice("session", "readmit", session, "dora", "--roles", "driver")
    assert (stranger.code, "dora is not in this session" in stranger.err) == (4, True)


def test_only_those_who_manage_participants_remove_and_the_session_may_be_in_the_environment(
    session: str, shell: Callable[..., UserShell]
) -> None:
    bob, carol = shell("bob", "approver"), shell("carol", "driver")
    for who in (bob, carol):
        who.output_of("session", "join", session)

    refused = bob("session", "remove", "carol", ACCORD_SESSION=session)

    assert refused.code == 3
    assert "may not send participant.role_change" in refused.err


async def test_following_ends_with_a_sentence_when_the_membership_ends(
    session: str, shell: Callable[..., UserShell], tmp_path: Path
) -> None:
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)
    following = await follow(bob, session, tmp_path)

    await asyncio.to_thread(bob.output_of, "session", "leave", session)

    out, err = await asyncio.wait_for(following.communicate(), 60)
    assert "leaves" in out.decode() or "left" in out.decode()
    assert "accord: you are no longer a member, so nothing more will follow" in err.decode()


async def test_following_ends_with_a_sentence_when_the_session_ends(
    alice: UserShell, session: str, tmp_path: Path
) -> None:
    following = await follow(alice, session, tmp_path)

    await asyncio.to_thread(alice.output_of, "session", "end", session)

    _, err = await asyncio.wait_for(following.communicate(), 60)
    assert "accord: the session has ended (completed); nothing more will follow" in err.decode()


def test_what_is_over_already_is_not_followed(
    alice: UserShell, session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)
    bob.output_of("session", "leave", session)
    assert "no longer a member" in bob("session", "log", session, "--follow").err
    alice.output_of("session", "end", session)
    assert "has ended" in alice("session", "log", session, "--follow", "--after", "999").err


async def follow(who: UserShell, session: str, cwd: Path) -> asyncio.subprocess.Process:
    """`log --follow` in a process of its own, after its first line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "accord", "session", "log", session, "--follow"),
        env=clean_environment(**who.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
    )
    assert process.stdout is not None
    await asyncio.wait_for(process.stdout.readline(), 60)
    return process
