"""A session whose docket has something to do now, something that waits, and judges who differ."""

from typing import Any

from accord.client import Session
from tests.helpers.docket.batch_text import item, valid_judgement
from tests.helpers.page.team import Team

HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
SUITE = "Run the suite on main -> suite_green=YES/NO | timebox<=20m | fail_if=any_test_red"
SHIP = "Ship v42 to everybody -> deployed=YES/NO | timebox<=30m | fail_if=error_rate>1.0"
MAIL = "Send the mail to shop owners -> mail_sent=YES/NO | timebox<=10m"
NEW_KEYS = "Sign with new keys -> ROTATE_shipped=YES/NO | timebox<=30m | fail_if=a_login_fails"


def titled(name: str, title: str, driver: str, step: str, *, after: str = "") -> str:
    attrs = f'title="{title}"' + (f" depends_on={after}" if after else "")
    return item(name, valid_judgement(name, driver, steps=[step]), attrs=attrs)


OTHERS = (
    titled("TESTS", "every test passes on main", "suite_green", SUITE)
    + titled("DEPLOY", "ship v42 to everybody", "error_rate", SHIP, after="TESTS")
    + titled("ANNOUNCE", "tell shop owners", "replies", MAIL, after="DEPLOY")
)
ROTATE = valid_judgement("ROTATE", "keys", steps=[NEW_KEYS])
DOUBT = ROTATE | valid_judgement("ROTATE", "keys", proposed_verdict="DISCARD", confidence="LOW")
NAMED = 'title="new signing keys"'


async def release(team: Team, name: str) -> dict[str, Session]:
    """Jonas asked, Maya judged one item otherwise, and claude proposes what comes first."""
    room = await team.session(name, "jonas", "maya", "claude")
    batch, judged = (HEAD + OTHERS + item("ROTATE", each, attrs=NAMED) for each in (ROTATE, DOUBT))
    await room["jonas"].add_context("decision:release", batch)
    await room["maya"].add_context("decision:release:maya", judged)
    await propose_step(room["claude"], "uv run pytest -q", "TESTS", "suite_green=YES/NO")
    await propose_step(room["claude"], "make rotate-keys", "ROTATE", "ROTATE_shipped=YES/NO")
    return room


async def propose_step(claude: Session, command: str, name: str, step: str) -> None:
    link = {"batch": "release", "item": name, "step": step}
    arguments: dict[str, Any] = {"command": command, "decision": link}
    await claude.propose("shell", arguments, category="shell_execute")
