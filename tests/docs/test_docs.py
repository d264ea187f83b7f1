"""The documentation does what it says: commands run, links lead somewhere, words stay plain."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.docs.output_compare import match_output, normalize, substitute_names
from tests.docs.page_blocks import (
    ALL_PAGES,
    EXECUTED_PAGES,
    HOST_PAGES,
    ROOT,
    Step,
    parse_blocks,
    parse_steps,
    strip_blocks,
)
from tests.docs.shell import CommandResult, Shell
from tests.helpers.servers.server_process import ServerProcess

FIRST_SCREEN_LINES = 64
TUTORIAL = ROOT / "docs" / "tutorial" / "first-session.md"
RETRY_TIMEOUT_S = 30.0
# Asking these again changes nothing, so what they show may take a moment to come about.
READ_ONLY_COMMAND = re.compile(
    r"(\w+=\S+ )*accord (gates|verify|doctor|session (log|show|list|export))\b"
)
# Programs in the background have a moment to come in before the next line is typed; who asks an
# agent that is not there yet asks again.
BACKGROUND_S = 1.0
RETRYABLE_ERROR = "is not an agent in this session"
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
REGISTRIES = re.compile(
    r"pypi\.|pythonhosted|registry\.npmjs|ghcr\.io|docker\.io|quay\.io", re.IGNORECASE
)
MACHINE_PATHS = re.compile(r"(?<![\w.~])/(?:home(?!/events)|Users|root|work)/")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def shell(tmp_path: Path, server: ServerProcess) -> Iterator[Shell]:
    env = {
        "ACCORD_URL": server.url,
        "ACCORD_TOKEN": server.admin_token,
        "ACCORD_HOME": str(server.home),
    }
    made = Shell(tmp_path / "here", env)
    yield made
    made.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "page", [page for page in EXECUTED_PAGES if page not in HOST_PAGES.values()], ids=page_id
)
def test_what_a_page_tells_to_do_can_be_done(
    page: Path, shell: Shell, server: ServerProcess
) -> None:
    if page == TUTORIAL:
        sign_in(shell, server)
    told = list(parse_steps(page.read_text("utf-8")))
    if any("curl " in step.do for step in told) and which("curl") is None:
        pytest.skip("not every machine has curl")
    follow(page, told, shell)


def follow(page: Path, told: list[Step], shell: Shell) -> None:
    """Do what the page tells, and compare what it shows."""
    names: dict[str, str] = {}
    for step in told:
        said, found = run_step(shell, step, names)
        where = f"{page_id(page)}:{step.line}\n$ {step.do}\n"
        refusal = (step.expect or "").startswith("accord: ")
        assert refusal == (said.code != 0), f"{where}ended with {said.code}:\n{said.text}"
        assert found is not None, f"{where}{said.text}\n--- is not ---\n{step.expect}"
        names |= found


def sign_in(shell: Shell, server: ServerProcess, who: str = "olga") -> None:
    """As the reader did with the link that the server printed, in place of the export lines."""
    request = {"id": who, "roles": ["admin"]}
    code = server.admin_request("POST", "/admin/invitations", request)["code"]
    assert shell.run("unset ACCORD_URL ACCORD_TOKEN").code == 0
    assert shell.run(f"accord login '{server.url}#code={code}'").code == 0


# What a reader does in a clone, the tests do where they are.
COMMAND_SUBSTITUTES = {"make demo": "python -m accord.demo"}


def run_step(
    shell: Shell, step: Step, names: dict[str, str]
) -> tuple[CommandResult, dict[str, str] | None]:
    """Do it as a reader does: what is not there yet is looked for again."""
    command = COMMAND_SUBSTITUTES.get(step.do) or substitute_names(step.do, names)
    deadline = time.monotonic() + RETRY_TIMEOUT_S
    while True:
        said = shell.run(command)
        found = {} if step.expect is None else match_output(step.expect, said.text)
        early = RETRYABLE_ERROR in said.text and said.code != 0
        unseen = found is None and READ_ONLY_COMMAND.match(command)
        if not (early or unseen) or time.monotonic() > deadline:
            break
    if command.endswith("&"):
        time.sleep(BACKGROUND_S)
    return said, found


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(strip_blocks(page.read_text("utf-8"))):
        target, _, anchor = found["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page_id(page)} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page_id(page)} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The places in a page that one can link to."""
    heads = re.findall(r"^#+ (.+)$", strip_blocks(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_id)
def test_no_page_names_a_registry_or_a_place_on_one_machine(page: Path) -> None:
    text = page.read_text("utf-8")

    assert not REGISTRIES.search(text)
    assert not MACHINE_PATHS.search(text)


@pytest.mark.parametrize("page", ALL_PAGES, ids=page_id)
def test_a_page_is_reached_from_the_index_or_the_readme(page: Path) -> None:
    index = ROOT / "docs" / "README.md"
    starts = (ROOT / "README.md", index, index.parent / "design" / "README.md")
    reached = {
        (start.parent / found["target"].partition("#")[0]).resolve()
        for start in starts
        for found in LINK.finditer(start.read_text("utf-8"))
    }
    assert page in reached | {ROOT / "README.md", ROOT / "AGENTS.md"}


def test_the_readme_shows_what_matters_on_its_first_screen() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    first_screen = "\n".join(lines[:FIRST_SCREEN_LINES])

    assert lines[0] == "# Accord"
    for word in ("make demo", "make run", "accord approve", "docs/tutorial/"):
        assert word in first_screen


@pytest.mark.parametrize("page", EXECUTED_PAGES, ids=page_id)
def test_what_is_not_run_says_why(page: Path) -> None:
    for block in parse_blocks(page.read_text("utf-8")):
        kind, _, reason = block.note.partition(": ")
        assert kind != "not run" or len(reason) > 10


@pytest.mark.parametrize(
    "printed",
    [
        "holds    room/x  35 records, all signed\n  7:" + "ab" * 32,
        "holds    room/x  2 records, all signed   \n  12:" + "01" * 32 + "\n",
    ],
)
def test_ids_hashes_and_counts_may_differ(printed: str) -> None:
    shown = "holds    room/x  9 records, all signed\n  9:" + "ff" * 32

    assert match_output(shown, printed) == {"9:" + "ff" * 32: normalize(printed).split("\n  ")[1]}


def test_other_words_are_noticed() -> None:
    assert match_output("Approved. 1 more", "Approved. 2 more") is None
    assert match_output("first\n…\nlast", "first\n1\n2\nlast") == {}
    assert match_output("who: …", "who: alice, admin") == {}


def test_names_on_a_page_stand_for_those_of_this_run() -> None:
    shown, real = "01M7GN84G29DZEZRJSYK08Q96P", "01M7GN9AAAAAAAAAAAAAAAAAAA"
    names = match_output(f"gate {shown}", f"gate {real}")

    assert names is not None
    assert substitute_names(f"accord approve {shown}", names) == f"accord approve {real}"
