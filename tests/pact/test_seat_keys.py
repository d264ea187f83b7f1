"""Signed seats: each on a machine of its own, in one repository."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.clients.cli import CommandRun
from tests.helpers.git.repositories import create_repository
from tests.pact.team import Team, assignment, seats


class Machines(Team):
    """Each seat has a home of its own, with its key."""

    def __call__(self, seat: str, *words: str, **env: str) -> CommandRun:
        """Run a verb where this seat's key is."""
        home = str(self.root.parent / f"home-{seat}")
        return super().__call__(seat, *words, **{"ACCORD_HOME": home, **env})

    def keyed(self) -> "Machines":
        """With a pact in which each seat has its key."""
        keys = [
            word
            for seat in ("ann", "bob", "cy")
            for word in ("--key", f"{seat}={self.good(seat, 'key').strip()}")
        ]
        self.good("ann", "init", "--project", "demo", *seats(), *keys)
        return self

    def edit(self, change: Callable[[list[str]], list[str]]) -> list[str]:
        """Somebody edits the log by hand, and makes the rest fit; what `--strict` says of it."""
        log = self.pact / "log.jsonl"
        log.write_text("".join(change(log.read_text().splitlines(keepends=True))))
        self.good("cy", "log", "--replay")
        assert self("cy", "validate").code == 0, "without --strict it is a good log"
        strict = self("cy", "validate", "--strict")
        assert strict.code == 2
        return strict.out.splitlines()


@pytest.fixture
def team(tmp_path: Path) -> Machines:
    return Machines(tmp_path / "work").keyed()


def test_signed_events_prove_who_accepted_what(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "it works: é")
    team.good("ann", "accept", "T1")

    strict = team("cy", "validate", "--strict")

    assert (strict.code, strict.out) == (0, "The log and its files are valid.\n")
    assert all(event["payload"]["signature"] for event in team.events)
    assert all(len(event) == 8 for event in team.events)


def test_a_worker_who_takes_the_reviewers_name_is_found_out(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    home = str(team.root.parent / "home-bob")

    ran = team("ann", "accept", "T1", ACCORD_HOME=home)

    assert (ran.code, "the event was not signed" in ran.err) == (0, True)
    assert team("cy", "validate").code == 0
    strict = team("cy", "validate", "--strict")
    assert (strict.code, "line 5: ann did not sign this accept" in strict.out) == (2, True)


def test_nothing_ships_on_a_name_alone_where_signatures_are_asked_for(team: Machines) -> None:
    team.assign("T1", "cart")
    team.assign("T2", "shop")
    for task in ("T1", "T2"):
        team.good("bob", "checkpoint", task, "--evidence", "x")
    team.good("ann", "accept", "T1")
    team.good("ann", "merge", "cart", "--strict")
    team("ann", "accept", "T2", ACCORD_HOME=str(team.root.parent / "home-bob"))
    before = team.log

    ran = team("bob", "merge", "shop", "--strict")

    assert (ran.code, "ann did not sign this accept; `accord pact" in ran.err) == (3, True), ran
    assert team.log == before


def test_an_edited_line_is_found_out(team: Machines) -> None:
    team.assign()
    log = team.pact / "log.jsonl"
    log.write_text(log.read_text().replace('"owner":"bob"', '"owner":"cy"'))
    team.good("ann", "log", "--replay")

    strict = team("cy", "validate", "--strict")

    assert (strict.code, "line 2: The signature does not match the key of ann" in strict.out) == (
        2,
        True,
    )


def test_an_accept_from_another_repository_is_found_out(team: Machines) -> None:
    """The same seats with the same keys, and a task of the same name, which ann accepted there."""
    other = Machines(team.root.parent / "other").keyed()
    for each in (team, other):
        each.assign()
        each.good("bob", "checkpoint", "T1", "--evidence", "x")
    other.good("ann", "accept", "T1")
    accept = other.log.splitlines(keepends=True)[-1]

    told = team.edit(lambda lines: [*lines, accept])

    assert team.statuses() == {"T1": "accepted"}
    assert [line for line in told if "line 5" in line and "another log" in line]


def test_a_verdict_that_is_taken_out_is_found_out(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "changes", "T1", "--reason", "no")
    team.good("bob", "checkpoint", "T1", "--evidence", "y")

    told = team.edit(lambda lines: [line for line in lines if "changes_requested" not in line])

    assert [line for line in told if "line 5" in line and "was removed" in line]


def test_keys_that_are_exchanged_are_found_out(team: Machines) -> None:
    """A worker who gives the reviewer's seat a key of his own has to sign what is not his."""
    team.assign()
    mine = team.good("bob", "key").strip()
    ann, bob = (seat["key"] for seat in team.events[0]["payload"]["seats"][:2])

    told = team.edit(lambda lines: [lines[0].replace(bob, "?").replace(ann, mine), *lines[1:]])

    assert "line 1: The signature does not match the key of ann" in told[0]
    assert [line for line in told if "line 2" in line and "not match the key of ann" in line]
    strict = team("ann", "validate", "--strict")
    assert "key for ann differs from the one on this machine" in strict.out


def test_evidence_that_its_owner_changes_afterwards_is_found_out(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "3 of 5 pass")
    team.good("ann", "accept", "T1")

    told = team.edit(lambda lines: [line.replace("3 of 5 pass", "5 of 5 pass") for line in lines])

    assert [line for line in told if "line 4: The signature does not match the key of bob" in line]
    assert [line for line in told if "line 5: The line before it was removed or changed" in line]


def test_signatures_outlive_branches_that_git_merges(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo")
    team = Machines(repo.root).keyed()
    repo.run("add", ".")
    repo.run("commit", "-qm", "the pact")
    for branch in ("one", "two"):
        repo.run("switch", "-q", "-c", branch, "main")
        team.good("ann", *assignment(f"T-{branch}", branch))
        team.good("bob", "checkpoint", f"T-{branch}", "--evidence", "x")
        team.good("ann", "accept", f"T-{branch}")
        repo.run("add", ".")
        repo.run("commit", "-qm", branch)
    repo.run("merge", "-q", "--no-edit", "one")
    team.good("ann", "log", "--replay")
    team.good("ann", *assignment("T3"))

    strict = team("cy", "validate", "--strict")

    assert strict.code == 0, strict.out
    assert len(team.events) == 1 + 2 * 4 + 1


def test_a_pact_without_keys_is_as_good_as_ever_but_proves_nothing(tmp_path: Path) -> None:
    team = Team(tmp_path / "work").init()
    team.assign()

    assert team("ann", "validate").code == 0
    found = json.loads(team("ann", "validate", "--strict", "--json").out)["findings"]
    assert [(each["code"], each["line"]) for each in found] == [("signature", 1), ("signature", 2)]


def test_a_key_is_for_its_owner_alone(team: Machines) -> None:
    key = team.root.parent / "home-ann" / "seats" / "ann.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)

    ran = team("ann", *assignment("T1"))

    assert (ran.code, "chmod 600" in ran.err) == (3, True)
    key.chmod(0o600)
    key.write_text("not a key")
    assert team("ann", "key").code == 5
