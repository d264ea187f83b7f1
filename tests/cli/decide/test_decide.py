"""`accord decide` as one types it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.cli.decide.decision_output import print_comparison, render_outcome
from accord.cli.main import main
from accord.core.dialects import papvp
from accord.core.docket import KernelPolicy
from accord.show import style
from accord.show.text import strip_styles
from tests.helpers.clients.cli import CommandRun, clean_environment, run_accord
from tests.helpers.docket.batch_text import item, probe, run_batch, valid_judgement
from tests.spec import proves


@pytest.fixture
def decide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., CommandRun]:
    """Runs `accord decide` in this process: the same parser, command and exit code, in no time."""
    for name, value in clean_environment().items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> CommandRun:
        code = main(["decide", *words])
        return CommandRun(code, *capsys.readouterr())

    return run


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "batch.txt"
    text = "<<<B close_policy=SIMOK>>>\n" + item("A", valid_judgement("A"), attrs="depends_on=B")
    path.write_text(text + item("B", valid_judgement("B")), "utf-8")
    return path


def saved(ran: CommandRun, path: Path) -> str:
    path.write_text(ran.out, "utf-8")
    return str(path)


@proves("PA-INPUT-1")
def test_a_batch_is_decided_and_the_slip_is_shown_with_its_line(batch: Path) -> None:
    ran = run_accord("decide", str(batch))

    assert ran.code == 0
    assert ran.out.startswith("```text\nSTATE: DECISION.TEST.FINAL\n")
    assert f"{batch}:1: ATTR_VALUE close_policy=SIMOK; it takes SIM_OK, REAL_ONLY\n" in ran.err
    assert "    1 | <<<B close_policy=SIMOK>>>\n" in ran.err


def test_at_a_screen_a_trigger_says_what_it_means(batch: Path) -> None:
    lines = list(render_outcome(run_batch(batch.read_text("utf-8"))))

    at = lines.index(f"{' ' * 10}DEPENDENCY_BLOCK")
    assert lines[at + 1] == f"{' ' * 10}a dependency comes first, or a resource is in use"


def test_at_a_screen_what_is_probed_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    unsure = valid_judgement("A", domain_type="Complex", probe=probe())

    lines = list(render_outcome(run_batch(item("A", unsure) + item("B", valid_judgement("B")))))

    first = next(each for each in lines if "A" in strip_styles(each).split())
    other = next(each for each in lines if "B" in strip_styles(each).split())
    assert first == f"{style.cyan('PROBE   ')}  {style.bold('A')}"
    assert other == f"{style.green('DO NOW  ')}  {style.bold('B')}"
    assert f"{' ' * 10}a trial comes first" in strip_styles("\n".join(lines))


def test_at_a_screen_a_comparison_says_what_its_columns_are(
    batch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = saved(run_accord("decide", str(batch)), tmp_path / "s.txt")
    text = Path(snapshot).read_text("utf-8")
    peers, _ = papvp.compare([text, text], KernelPolicy.UPSTREAM)

    print_comparison(peers)

    heads, *_ = lines = capsys.readouterr().out.splitlines()
    named = {line.partition("  ")[0] for line in lines[lines.index("") + 1 :]}
    assert named == {each for each in heads.split() if each.isupper()}
    assert max(map(len, lines)) <= 80


def test_a_judgement_or_a_batch_in_the_wrong_place_is_told_where_to_go(
    batch: Path, tmp_path: Path, decide: Callable[..., CommandRun]
) -> None:
    judgement = tmp_path / "judge.json"
    judgement.write_text('{"proposed_verdict": "DO NOW"}', "utf-8")

    assert "a judgement goes in behind <<<JUDGE>>>" in decide(str(judgement)).err
    ran = decide("compare", str(batch), str(batch))
    assert ran.code == 2
    assert "`accord decide BATCH > SNAPSHOT` makes a snapshot of a batch" in ran.err


def test_programs_get_json(batch: Path) -> None:
    said = run_accord("decide", "run", str(batch), "--json", "--now", "2026-01-01").json

    assert [each["verdict"] for each in said["items"]] == ["DO LATER", "DO NOW"]
    assert said["items"][1]["next"]["token"] == "B_shipped=YES/NO"
    assert len(said["sha256"]) == 64
    assert said["batch_id"].startswith("20260101-")
    assert said["findings"][0]["line"] == 1


def test_exit_codes_say_invalid_and_denied(
    batch: Path, tmp_path: Path, decide: Callable[..., CommandRun]
) -> None:
    nothing = tmp_path / "nothing.txt"
    nothing.write_text("hello", "utf-8")
    snapshot = saved(decide(str(batch)), tmp_path / "s.txt")

    assert decide(str(nothing)).code == 2
    assert decide("report", str(nothing)).code == 2
    assert decide("report", "--lite", snapshot).code == 0
    assert decide("allow", str(nothing), "A", "x").code == 2
    # As a script gates a deployment: by the exit code of a process.
    assert run_accord("decide", "allow", snapshot, "A", "A_shipped=YES/NO").code == 3
    assert run_accord("decide", "allow", snapshot, "B", "B_shipped=YES/NO").code == 0
    assert decide("allow", snapshot, "B", "B_shipped=YES/NO", "--json").json["allowed"]
    assert decide("compare", snapshot).code == 2
    assert decide("compare", snapshot, snapshot, "--json").json["hosts"] == 2
    assert "CONVERGED" in decide("compare", snapshot, snapshot).out
    assert decide(str(tmp_path / "none.txt")).code == 4
    nothing.write_bytes(b"ok\n\xff")
    assert "2: this is not UTF-8" in decide(str(nothing)).err
    folder = decide(str(tmp_path))
    assert (folder.code, "is a directory; give the name of a file" in folder.err) == (2, True)


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

    told = run_accord("decide", str(batch)).err
    flaw = run_accord("decide", "check", str(judgement))

    assert f"{batch}:6: JUDGE_VALUE A: urgency is 'SOON'" in told
    assert '    6 | "urgency": "SOON",\n' in told
    assert f'{batch}:8: STEP_GRAMMAR A: step 1: Think hard\n    8 | "Think hard"]}}\n' in told
    assert f"{batch}:10: DUPLICATE_ID A\n    10 | <<<I id=A>>>\n" in told
    assert f"{batch}:10: END_MISSING A\n" in told
    assert flaw.code == 2
    assert f"{judgement}:2: JUDGE_SYNTAX JSON is malformed" in flaw.err
    assert '    2 | "urgency" "LOW"}' in flaw.err


def test_a_check_reads_snapshots_batches_and_judgements(
    batch: Path, tmp_path: Path, decide: Callable[..., CommandRun]
) -> None:
    snapshot = saved(decide(str(batch)), tmp_path / "s.txt")
    lie = tmp_path / "lie.txt"
    lie.write_text(Path(snapshot).read_text("utf-8").replace("DRAFT->STANDBY", "DRAFT->ACTIVE"))
    judgement = tmp_path / "judge.json"
    judgement.write_text(json.dumps({"urgency": "SOON"}), "utf-8")

    assert decide("check", snapshot).out == "RESULT: VALID\n"
    wrong = decide("check", "--repair", str(lie))
    assert wrong.code == 2
    assert "V12 A" in wrong.out
    assert "A | DRAFT->STANDBY" in wrong.out
    assert decide("check", str(lie), "--json").json["result"] == "REPAIRABLE"
    assert "urgency is 'SOON'" in decide("check", str(judgement)).err
    assert decide("check", str(judgement), "--json").json["findings"]
    assert decide("check", str(batch)).code == 2


def test_the_schema_accepts_the_example_of_the_prompt() -> None:
    import jsonschema_rs

    schema = run_accord("decide", "schema").json
    prompt = run_accord("decide", "prompt").out
    example = prompt[prompt.index("\n{") : prompt.rindex("}") + 1]

    jsonschema_rs.validator_for(schema).validate(json.loads(example))


def test_a_text_may_say_itself_what_it_wants(
    batch: Path, tmp_path: Path, decide: Callable[..., CommandRun]
) -> None:
    snapshot = saved(decide(str(batch)), tmp_path / "s.txt")
    asked = tmp_path / "r.txt"
    asked.write_text("REPORT LITE\n" + Path(snapshot).read_text("utf-8"), "utf-8")

    assert decide(str(asked)).out.startswith("PA_PVP REPORT LITE\n")
    assert decide(str(asked), "--json").json["valid"]
    assert "accord decide allow" in decide("--help").out
