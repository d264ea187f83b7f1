"""The result of a step that ran in a session, as the kernel records it."""

from accord.core.docket.session_kernel import MAX_RESULT_CHARS, SessionKernel
from accord.core.kernel.decision_port import StepResult
from tests.helpers.docket.batch_text import item, valid_judgement

DAY = "2026-01-01"
HEAD = "<<<B exec_capability=RUNTIME_OK>>>\n"
BEFORE = SessionKernel().decide(HEAD + item("A", valid_judgement("A")), "", DAY).snapshot


def step_line_after(output: str, *, success: bool = True, fault: str = "") -> str:
    ran = StepResult("A", "A_shipped=YES/NO", success, output, fault=fault)
    ruling = SessionKernel().decide_after_step(BEFORE, ran, DAY)
    assert not ruling.problem
    lines = ruling.snapshot.split("\n")
    return next(line for line in lines if line.startswith("S1: Ship A ->"))


def test_the_output_of_a_step_is_recorded_as_it_is_on_one_line() -> None:
    line = step_line_after('C:\\temp "42" <<<END>>>\npassed | 0 failed')

    assert line.endswith(
        'status=COMPLETED | evidence_tier=REAL | result=C:\\temp "42" <<<END>>> passed / 0 failed'
    )


def test_a_step_without_output_is_recorded_with_its_status() -> None:
    assert step_line_after("").endswith("| result=COMPLETED")
    failed = step_line_after("", success=False, fault="EXCEPTION_IO")
    assert "-> EXCEPTION_IO |" in failed
    assert failed.endswith("status=FAILED_EXCEPTION | evidence_tier=REAL | result=FAILED_EXCEPTION")


def test_a_long_output_is_cut() -> None:
    assert step_line_after("x" * 999).endswith(f"result={'x' * MAX_RESULT_CHARS}")


def test_the_result_of_a_step_that_is_gone_is_refused() -> None:
    ran = StepResult("A", "other=YES/NO", success=True, output="")

    ruling = SessionKernel().decide_after_step(BEFORE, ran, DAY)

    assert ruling.problem == "other=YES/NO is no longer a step of A"
    assert ruling.snapshot == ""
