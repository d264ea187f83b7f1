"""`accord decide` as one types it."""

import json
from pathlib import Path

import pytest

from accord.cli.verdicts import compared, shown
from accord.core.dialects import papvp
from accord.core.docket import Policy
from accord.show import paint
from accord.show.text import unstyled
from tests.helpers.cli import Ran, accord
from tests.helpers.docket import decide, item, ok, probe
from tests.spec import proves


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "batch.txt"
    text = "<<<B close_policy=SIMOK>>>\n" + item("A", ok("A"), attrs="depends_on=B")
    path.write_text(text + item("B", ok("B")), "utf-8")
    return path


def saved(ran: Ran, path: Path) -> str:
    path.write_text(ran.out, "utf-8")
    return str(path)


@proves("PA-INPUT-1")
def test_a_batch_is_decided_and_the_slip_is_shown_with_its_line(batch: Path) -> None:
    ran = accord("decide", str(batch))

    assert ran.code == 0
    assert ran.out.startswith("```text\nSTATE: DECISION.TEST.FINAL\n")
    assert f"{batch}:1: ATTR_VALUE close_policy=SIMOK; it takes SIM_OK, REAL_ONLY\n" in ran.err
    assert "    1 | <<<B close_policy=SIMOK>>>\n" in ran.err


def test_at_a_screen_a_trigger_says_what_it_means(batch: Path) -> None:
    lines = list(shown(decide(batch.read_text("utf-8"))))

    at = lines.index(f"{' ' * 10}DEPENDENCY_BLOCK")
    assert lines[at + 1] == f"{' ' * 10}something else comes first, or what it uses is taken"


def test_at_a_screen_what_is_probed_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    unsure = ok("A", domain_type="Complex", probe=probe())

    lines = list(shown(decide(item("A", unsure) + item("B", ok("B")))))

    first = next(each for each in lines if "A" in unstyled(each).split())
    other = next(each for each in lines if "B" in unstyled(each).split())
    assert first == f"{paint.cyan('PROBE   ')}  {paint.bold('A')}"
    assert other == f"{paint.green('DO NOW  ')}  {paint.bold('B')}"
    assert f"{' ' * 10}a trial comes first" in unstyled("\n".join(lines))


def test_at_a_screen_a_comparison_says_what_its_columns_are(
    batch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = saved(accord("decide", str(batch)), tmp_path / "s.txt")
    text = Path(snapshot).read_text("utf-8")
    peers, _ = papvp.compare([text, text], Policy.UPSTREAM)

    compared(peers)

    heads, *_ = lines = capsys.readouterr().out.splitlines()
    named = {line.partition("  ")[0] for line in lines[lines.index("") + 1 :]}
    assert named == {each for each in heads.split() if each.isupper()}
    assert max(map(len, lines)) <= 80


def test_a_judgement_or_a_batch_in_the_wrong_place_is_told_where_to_go(
    batch: Path, tmp_path: Path
) -> None:
    judgement = tmp_path / "judge.json"
    judgement.write_text('{"proposed_verdict": "DO NOW"}', "utf-8")

    assert "a judgement goes in behind <<<JUDGE>>>" in accord("decide", str(judgement)).err
    ran = accord("decide", "compare", str(batch), str(batch))
    assert ran.code == 2
    assert "`accord decide BATCH > SNAPSHOT` makes one of a batch" in ran.err


def test_programs_get_json(batch: Path) -> None:
    said = accord("decide", "run", str(batch), "--json", "--now", "2026-01-01").json

    assert [each["verdict"] for each in said["items"]] == ["DO LATER", "DO NOW"]
    assert said["items"][1]["next"]["token"] == "B_shipped=YES/NO"
    assert len(said["sha256"]) == 64
    assert said["batch_id"].startswith("20260101-")
    assert said["diagnostics"][0]["line"] == 1


def test_exit_codes_say_invalid_and_denied(batch: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.txt"
    nothing.write_text("hello", "utf-8")
    snapshot = saved(accord("decide", str(batch)), tmp_path / "s.txt")

    assert accord("decide", str(nothing)).code == 2
    assert accord("decide", "report", str(nothing)).code == 2
    assert accord("decide", "report", "--lite", snapshot).code == 0
    assert accord("decide", "allow", str(nothing), "A", "x").code == 2
    assert accord("decide", "allow", snapshot, "A", "A_shipped=YES/NO").code == 3
    assert accord("decide", "allow", snapshot, "B", "B_shipped=YES/NO").code == 0
    assert accord("decide", "allow", snapshot, "B", "B_shipped=YES/NO", "--json").json["allowed"]
    assert accord("decide", "compare", snapshot).code == 2
    assert accord("decide", "compare", snapshot, snapshot, "--json").json["hosts"] == 2
    assert "CONVERGED" in accord("decide", "compare", snapshot, snapshot).out
    assert accord("decide", str(tmp_path / "none.txt")).code == 4
    nothing.write_bytes(b"ok\n\xff")
    assert "2: this is no UTF-8" in accord("decide", str(nothing)).err
    folder = accord("decide", str(tmp_path))
    assert (folder.code, "is a directory; name a file" in folder.err) == (2, True)


def test_each_remark_quotes_the_line_that_it_is_about(tmp_path: Path) -> None:
    batch = tmp_path / "batch.txt"
    batch.write_text(
        "<<<I id=A>>>\n<<<PLAN>>>\n- act\n<<<JUDGE>>>\n"
        '{"why": "because",\n "urgency": "SOON",\n "steps": [\n  "Think hard"]}\n'
        "<<<END>>>\n<<<I id=A>>>\n<<<PLAN>>>\n- act\n",
        "utf-8",
    )
    judgement = tmp_path / "judge.json"
    judgement.write_text('{"why": "because",\n "urgency" "LOW"}', "utf-8")

    told = accord("decide", str(batch)).err
    flaw = accord("decide", "check", str(judgement))

    assert f"{batch}:6: JUDGE_VALUE A: urgency is 'SOON'" in told
    assert '    6 | "urgency": "SOON",\n' in told
    assert f'{batch}:8: STEP_GRAMMAR A: step 1: Think hard\n    8 | "Think hard"]}}\n' in told
    assert f"{batch}:10: DUPLICATE_ID A\n    10 | <<<I id=A>>>\n" in told
    assert f"{batch}:10: END_MISSING A\n" in told
    assert flaw.code == 2
    assert f"{judgement}:2: JUDGE_SYNTAX JSON is malformed" in flaw.err
    assert '    2 | "urgency" "LOW"}' in flaw.err


def test_a_check_reads_snapshots_batches_and_judgements(batch: Path, tmp_path: Path) -> None:
    snapshot = saved(accord("decide", str(batch)), tmp_path / "s.txt")
    lie = tmp_path / "lie.txt"
    lie.write_text(Path(snapshot).read_text("utf-8").replace("DRAFT->STANDBY", "DRAFT->ACTIVE"))
    judgement = tmp_path / "judge.json"
    judgement.write_text(json.dumps({"urgency": "SOON"}), "utf-8")

    assert accord("decide", "check", snapshot).out == "RESULT: VALID\n"
    wrong = accord("decide", "check", "--repair", str(lie))
    assert wrong.code == 2
    assert "V12 A" in wrong.out
    assert "A | DRAFT->STANDBY" in wrong.out
    assert accord("decide", "check", str(lie), "--json").json["result"] == "REPAIRABLE"
    assert "urgency is 'SOON'" in accord("decide", "check", str(judgement)).err
    assert accord("decide", "check", str(judgement), "--json").json["flaws"]
    assert accord("decide", "check", str(batch)).code == 2


def test_the_schema_accepts_the_example_of_the_prompt() -> None:
    import jsonschema_rs

    schema = accord("decide", "schema").json
    prompt = accord("decide", "prompt").out
    example = prompt[prompt.index("\n{") : prompt.rindex("}") + 1]

    jsonschema_rs.validator_for(schema).validate(json.loads(example))


def test_a_text_may_say_itself_what_it_wants(batch: Path, tmp_path: Path) -> None:
    snapshot = saved(accord("decide", str(batch)), tmp_path / "s.txt")
    asked = tmp_path / "r.txt"
    asked.write_text("REPORT LITE\n" + Path(snapshot).read_text("utf-8"), "utf-8")

    assert accord("decide", str(asked)).out.startswith("PA_PVP REPORT LITE\n")
    assert accord("decide", str(asked), "--json").json["valid"]
    assert "accord decide allow" in accord("decide", "--help").out
