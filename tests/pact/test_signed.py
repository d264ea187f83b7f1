"""Signed seats: each on a machine of its own, in one repository."""

import json
from pathlib import Path

import pytest

from tests.helpers.cli import Ran
from tests.pact.team import Team, assignment, seats


class Machines(Team):
    """Each seat has a home of its own, with its key."""

    def __call__(self, seat: str, *words: str, **env: str) -> Ran:
        """Run a verb where this seat's key is."""
        home = str(self.root.parent / f"home-{seat}")
        return super().__call__(seat, *words, **{"ACCORD_HOME": home, **env})


@pytest.fixture
def team(tmp_path: Path) -> Machines:
    team = Machines(tmp_path / "work")
    keys = [
        word
        for seat in ("ann", "bob", "cy")
        for word in ("--key", f"{seat}={team.good(seat, 'key').strip()}")
    ]
    team.good("ann", "init", "--project", "demo", *seats(), *keys)
    return team


def test_signed_events_prove_who_accepted_what(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "it works: é")
    team.good("ann", "accept", "T1")

    strict = team("cy", "validate", "--strict")

    assert (strict.code, strict.out) == (0, "The log and its files are as they should be.\n")
    assert all(event["payload"]["signature"] for event in team.events)
    assert all(len(event) == 8 for event in team.events)


def test_a_worker_who_takes_the_reviewers_name_is_found_out(team: Machines) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    home = str(team.root.parent / "home-bob")

    ran = team("ann", "accept", "T1", ACCORD_HOME=home)

    assert (ran.code, "nothing was signed" in ran.err) == (0, True)
    assert team("cy", "validate").code == 0
    strict = team("cy", "validate", "--strict")
    assert (strict.code, "line 5: ann did not sign this accept" in strict.out) == (2, True)


def test_an_edited_line_is_found_out(team: Machines) -> None:
    team.assign()
    log = team.pact / "log.jsonl"
    log.write_text(log.read_text().replace('"owner":"bob"', '"owner":"cy"'))
    team.good("ann", "log", "--replay")

    strict = team("cy", "validate", "--strict")

    assert (strict.code, "line 2: This is not signed by the key of ann" in strict.out) == (2, True)


def test_a_pact_without_keys_is_as_good_as_ever_but_proves_nothing(tmp_path: Path) -> None:
    team = Team(tmp_path / "work").init()
    team.assign()

    assert team("ann", "validate").code == 0
    found = json.loads(team("ann", "validate", "--strict", "--json").out)["findings"]
    assert [(each["check"], each["line"]) for each in found] == [("signature", 1), ("signature", 2)]


def test_a_key_is_for_its_owner_alone(team: Machines) -> None:
    key = team.root.parent / "home-ann" / "seats" / "ann.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)

    ran = team("ann", *assignment("T1"))

    assert (ran.code, "chmod 600" in ran.err) == (3, True)
    key.chmod(0o600)
    key.write_text("not a key")
    assert team("ann", "key").code == 5
