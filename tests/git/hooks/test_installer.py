"""Hooks are quick, chain to what is there, and go away without a trace."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from accord.git import bridge_client
from accord.git.hooks import hook_script
from accord.git.hooks.dispatch import HOOK_NAMES
from accord.settings import client
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

FAKE = '#!/bin/sh\necho "$0 $*" >> ran.log\ncat >> ran.log\n'


def hooks(work: WorkTree) -> Path:
    return work.path / ".git" / "hooks"


def put(path: Path, text: str = FAKE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(each.relative_to(folder)): (each.stat().st_mode, each.read_bytes())
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


@proves("OPEN-76")
def test_hooks_that_are_there_run_first_and_come_back_to_the_byte(plain: WorkTree) -> None:
    for name in ("prepare-commit-msg", "pre-push", "post-commit"):
        put(hooks(plain) / name)
    put(hooks(plain) / "commit-msg", "#!/bin/sh\nexit 7\n")
    (hooks(plain) / "commit-msg").chmod(0o644)
    before = everything(hooks(plain))
    assert plain.accord("git", "install").code == 0
    once = everything(hooks(plain))
    assert plain.accord("git", "install").code == 0
    assert everything(hooks(plain)) == once
    plain.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")
    ran = (plain.path / "ran.log").read_text()

    assert ".git/hooks/prepare-commit-msg .git/COMMIT_EDITMSG message" in ran
    assert "post-commit" in ran
    assert plain.decision_ids()
    assert plain.accord("git", "uninstall").code == 0
    assert everything(hooks(plain)) == before


PYTHON_HOOK = """#!/usr/bin/env python3
import os, sys
open("ran.log", "a").write(os.path.basename(sys.argv[0]) + chr(10))
"""


def test_a_hook_that_is_no_shell_script_runs_under_its_own_name(plain: WorkTree) -> None:
    put(hooks(plain) / "commit-msg", PYTHON_HOOK)
    put(plain.path / "tools" / "dispatch", PYTHON_HOOK)
    (hooks(plain) / "post-commit").symlink_to("../../tools/dispatch")
    before = everything(hooks(plain))
    assert plain.accord("git", "install").code == 0
    plain.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert (plain.path / "ran.log").read_text().split() == ["commit-msg", "post-commit"]
    assert plain.decision_ids()
    assert plain.accord("git", "uninstall").code == 0
    assert everything(hooks(plain)) == before
    assert os.readlink(hooks(plain) / "post-commit") == "../../tools/dispatch"  # noqa: PTH115


@pytest.mark.parametrize("first_line", ["#!/bin/sh -e", "#!/usr/bin/env bash", "#! /bin/bash -eu"])
def test_an_earlier_shell_hook_sees_its_own_path_and_no_variable_of_ours(
    plain: WorkTree, first_line: str
) -> None:
    told = 'echo "$0 $* ${ACCORD_EARLIER_HOOK-none}" >> ran.log'
    put(hooks(plain) / "commit-msg", f"{first_line}\n{told}")
    plain.accord("git", "install")
    plain.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    expected = ".git/hooks/commit-msg .git/COMMIT_EDITMSG none\n"
    assert (plain.path / "ran.log").read_text() == expected
    refused = plain.run("git", "commit", "--allow-empty", "-qm", "x\n\nPVP-Session: ses_1")
    assert refused.code == 1


def test_a_hook_that_is_part_of_the_repository_is_left_alone(plain: WorkTree) -> None:
    plain.git("config", "core.hooksPath", ".githooks")
    put(plain.path / ".githooks" / "commit-msg", "#!/bin/sh\nexit 0\n")
    plain.git("add", ".githooks")
    said = plain.accord("git", "install").out

    assert 'accord git hook commit-msg "$@"' in said
    assert "outside this repository" not in said
    assert plain.git("status", "--porcelain", "-uno") == "A  .githooks/commit-msg"
    bad = plain.path / "message"
    bad.write_text("x\n\nPVP-Session: ses_1\n")
    assert plain.accord("git", "hook", "commit-msg", str(bad)).code == 1


def test_hooks_of_an_earlier_version_are_replaced_and_removed(plain: WorkTree) -> None:
    former = f"#!/bin/sh\n{hook_script.FORMER_MARKER}\nexit 0\n"
    put(hooks(plain) / "commit-msg", former)
    put(hooks(plain) / "commit-msg.before-accord")
    put(hooks(plain) / "post-commit", former)
    plain.accord("git", "install")
    plain.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert "hooks/commit-msg .git" in (plain.path / "ran.log").read_text()
    plain.accord("git", "uninstall")
    left = {each.name for each in hooks(plain).iterdir() if each.suffix != ".sample"}
    assert left == {"commit-msg"}
    assert (hooks(plain) / "commit-msg").read_text() == FAKE


def test_a_hook_that_says_no_is_still_obeyed(plain: WorkTree) -> None:
    put(hooks(plain) / "commit-msg", "#!/bin/sh\necho no >&2\nexit 3\n")
    plain.accord("git", "install")
    plain.write("a.txt", "a")
    ran = plain.run("git", "commit", "-qm", "feat: begin")

    assert (ran.code, ran.err) == (1, "no\n")


def test_a_hook_that_fails_after_the_fact_costs_no_record(plain: WorkTree) -> None:
    """Git does not care how these end."""
    for name in ("post-commit", "post-rewrite", "post-merge"):
        put(hooks(plain) / name, '#!/bin/sh\necho "$0" >> ran.log\nexit 3\n')
    plain.accord("git", "install")
    session = plain.with_environment(PVP_SESSION_ID="ses_1")
    session.commit("feat: begin")
    made = plain.decision_ids()
    plain.git("commit", "-q", "--amend", "-m", "feat: begin again")

    assert len(made) == 1
    assert plain.decision_ids() == made
    assert plain.run(".git/hooks/post-commit").code == 3
    assert "post-rewrite" in (plain.path / "ran.log").read_text()


def test_what_git_tells_a_hook_reaches_both(plain: WorkTree, tmp_path: Path) -> None:
    put(hooks(plain) / "pre-push")
    plain.accord("git", "install")
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    sha = plain.commit("feat: begin")
    plain.git("push", "-q", str(remote.path), "main")

    assert (
        f"refs/heads/main {sha} refs/heads/main {'0' * 40}\n"
        in (plain.path / "ran.log").read_text()
    )


def test_the_configured_folder_of_hooks_is_used(plain: WorkTree, tmp_path: Path) -> None:
    plain.git("config", "core.hooksPath", str(tmp_path / "shared hooks"))
    ran = plain.accord("git", "install")
    plain.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert "points outside this repository" in ran.out
    assert plain.decision_ids()
    assert not [each for each in hooks(plain).glob("*") if each.suffix != ".sample"]
    plain.accord("git", "uninstall")
    assert list((tmp_path / "shared hooks").iterdir()) == []


def test_a_folder_of_hooks_that_repositories_share_serves_each_as_itself(
    plain: WorkTree, tmp_path: Path
) -> None:
    other = WorkTree.create(tmp_path, "other")
    for each in (plain, other):
        each.git("config", "core.hooksPath", str(tmp_path / "shared"))
        assert each.accord("git", "install").code == 0
        each.with_environment(PVP_SESSION_ID="ses_1").commit(f"feat: begin {each.path.name}")
    assert len({*plain.decision_ids(), *other.decision_ids()}) == 2
    assert plain.git("config", "accord.repo") != other.git("config", "accord.repo")
    assert other.accord("git", "uninstall").code == 0

    plain.with_environment(PVP_SESSION_ID="ses_1").commit("no type at all", "b.txt")
    assert plain.message() == "no type at all\n"


def test_the_hooks_of_one_repository_do_not_run_in_a_submodule_without(
    session: WorkTree, tmp_path: Path
) -> None:
    inner = WorkTree.create(tmp_path, "inner")
    inner.commit("begin")
    session.commit("feat: begin")
    flags = ("-c", "protocol.file.allow=always")
    session.git(*flags, "submodule", "add", "-q", str(inner.path), "sub")
    sub = session.in_directory(session.path / "sub")
    sub.commit("said in my own way")

    assert sub.message() == "said in my own way\n"


def test_a_repository_whose_directory_is_named_by_the_environment(plain: WorkTree) -> None:
    """As people keep their settings: `git --git-dir=… --work-tree=…`."""
    plain.git("init", "-q", "--separate-git-dir", str(plain.home / "apart"))
    (plain.path / ".git").unlink()
    led = {"GIT_DIR": str(plain.home / "apart"), "GIT_WORK_TREE": str(plain.path)}
    someone = plain.with_environment(**led)
    assert someone.accord("git", "install").code == 0
    someone.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert someone.decision_ids()


def test_a_python_or_a_package_that_is_gone_lets_commits_pass(work: WorkTree) -> None:
    for name in HOOK_NAMES:
        path = hooks(work) / name
        path.write_text(
            path.read_text().replace(str(Path(bridge_client.__file__).parents[2]), "/nowhere")
        )
    work.with_environment(PVP_SESSION_ID="ses_1").commit("no type at all")
    for name in HOOK_NAMES:
        path = hooks(work) / name
        path.write_text(path.read_text().replace(sys.executable, "/no/python"))
    work.with_environment(PVP_SESSION_ID="ses_1").commit("no type at all", "b.txt")

    assert work.message() == "no type at all\n"


def test_a_package_that_is_broken_lets_commits_pass(work: WorkTree, tmp_path: Path) -> None:
    (tmp_path / "accord" / "git" / "hooks").mkdir(parents=True)
    (tmp_path / "accord" / "git" / "hooks" / "dispatch.py").write_text("this is no Python")
    for name in HOOK_NAMES:
        path = hooks(work) / name
        path.write_text(
            path.read_text().replace(str(Path(bridge_client.__file__).parents[2]), str(tmp_path))
        )
    work.with_environment(PVP_SESSION_ID="ses_1").commit("no type at all")

    assert work.message() == "no type at all\n"


def test_an_older_package_is_run_as_it_was(work: WorkTree, tmp_path: Path) -> None:
    (tmp_path / "accord" / "git" / "hooks").mkdir(parents=True)
    says_no = "def main(words):\n    return words[0] == 'commit-msg'\n"
    (tmp_path / "accord" / "git" / "hooks" / "dispatch.py").write_text(says_no)
    for name in HOOK_NAMES:
        path = hooks(work) / name
        path.write_text(
            path.read_text().replace(str(Path(bridge_client.__file__).parents[2]), str(tmp_path))
        )
    work.commit("said in my own way")

    assert work.run("git", "commit", "-q", "--allow-empty", "-m", "about PVP").code == 1


def test_a_session_that_came_with_the_repository_is_not_ours(work: WorkTree) -> None:
    work.write(".accord.toml", 'session = "ses_stranger"')
    with listening(work, commit_context={}) as heard:
        work.commit("made without a session")
        work.git("rm", "-q", "--cached", ".accord.toml")
        work.git("commit", "-qm", "made by hand")

    asked = [each.get("session") for each in heard.asked if each["action"] == "commit-context"]
    assert asked == [None, "ses_stranger"]


def test_files_of_the_repository_are_never_imported(session: WorkTree) -> None:
    for name in ("json.py", "accord.py", "subprocess.py", "sitecustomize.py"):
        session.write(name, "raise SystemExit('taken over')")
    session.git("commit", "-qm", "feat: begin")

    assert session.decision_ids()


# The bridge


class Bridge:
    """Answers as told, at the place where a server's bridge listens."""

    def __init__(self, home: Path, answers: dict[str, Any]) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.asked: list[dict[str, Any]] = []
        self._answers = answers
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(home / "bridge.sock"))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rwb") as lines:
            said = json.loads(lines.readline())
            self.asked.append(said)
            answer = self._answers.get(said["action"])
            if answer is None:
                lines.readline()  # until they hang up
            else:
                lines.write(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        # Ends `accept`; its thread could otherwise take a connection of the next test's socket.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@contextmanager
def listening(work: WorkTree, **answers: Any) -> Iterator[Bridge]:
    """Somebody is there; hooks wait for what is answered, however long that takes here."""
    made = Bridge(
        Path(work.env["ACCORD_HOME"]), {k.replace("_", "-"): v for k, v in answers.items()}
    )
    if answers:
        extend_hook_timeout(hooks(work))
    try:
        yield made
    finally:
        made.close()


CONTEXT = {
    "session": "ses_live",
    "decision": "dec_01HX7K9P4QZCVD3N8MYW6R5T2B",
    "messages": ["m1", "m2"],
    "decision_type": "bugfix",
    "confidence": 0.9,
    "decision_by": ["human:alice", "ai:claude"],
    "approved_by": ["human:bob"],
    "tools": ["write_file"],
}
COVERAGE = {"session": "ses_live", "approved_by": ["human:bob"]}
RECORD = {
    "version": 1,
    "session": {"id": "ses_live", "name": "Mending"},
    "decisions": [
        {
            "id": CONTEXT["decision"],
            "pvp_session": "ses_live",
            "session_name": "Mending",
            "decision_type": "bugfix",
            "decided_by": ["human:alice", "ai:claude"],
            "approvals": [{"gate": "g1", "by": "human:bob", "action": "write_file"}],
            "alternatives_considered": [
                {"kind": "fork", "id": "f1", "description": "a mutex", "reason": "too slow"}
            ],
            "position": {"stream": "room/ses_live", "version": 9},
        }
    ],
    "conversation": {
        "thread_id": "t",
        "messages": [
            {
                "id": "m1",
                "type": "prompt.submit",
                "sender": "human:alice",
                "content": "Mend the race",
                "timestamp": "2026-01-06T10:00:00Z",
            }
        ],
    },
}


def test_the_bridge_says_what_the_session_knows(work: WorkTree) -> None:
    answers = {
        "commit_context": {**CONTEXT, "coverable": True},
        "commit_coverage": COVERAGE,
        "commit_created": {"note": RECORD, "decision": "x"},
    }
    with listening(work, **answers) as heard:
        work.commit("fix: mend the race")

    assert work.trailers()["Approved-By"] == "human:bob"
    assert work.trailers()["PVP-Decision-Type"] == "correction"
    assert work.decision_ids() == [CONTEXT["decision"]]
    assert [each["action"] for each in heard.asked] == [
        "commit-context",
        "commit-coverage",
        "commit-created",
    ]
    created = heard.asked[2]
    assert heard.asked[1]["changes"] == created["changes"]
    assert heard.asked[1]["tree"] == created["tree"] == work.git("rev-parse", "HEAD^{tree}")
    assert created["repo"] == work.git("config", "accord.repo")
    assert (created["sha"], created["files"]) == (work.head(), ["file.txt"])
    shown = work.accord("why", "file.txt:1").out
    assert "context      human:bob said yes for write_file; this covers nothing here" in shown
    assert "instead of   a mutex: too slow" in shown
    assert "Mend the race" in shown


def test_the_environment_beats_the_bridge(session: WorkTree) -> None:
    context = {**CONTEXT, "session": session.env["PVP_SESSION_ID"]}
    with listening(session, commit_context=context, commit_created={}):
        session.commit("fix: mend the race")

    assert session.trailers()["PVP-Messages"] == "msg-01,msg-05"
    assert session.trailers()["PVP-Decision"] == CONTEXT["decision"]


@pytest.mark.parametrize("kind", ["deep", "long", "pipe"])
def test_settings_that_nobody_can_read_cost_no_trailer(work: WorkTree, kind: str) -> None:
    place = work.path / ".accord.toml"
    makes: dict[str, Callable[[], object]] = {
        "deep": lambda: place.write_text(f"session = {'[' * 20_000}"),
        "long": lambda: place.write_text(f"session = '{'x' * 100_000}'"),
        "pipe": lambda: os.mkfifo(place),
    }
    makes[kind]()
    with listening(work, commit_context=CONTEXT, commit_created={}) as heard:
        work.commit("fix: mend the race")

    assert work.trailers()["PVP-Session"] == "ses_live"
    assert "session" not in heard.asked[0]


def test_the_bridge_is_told_text_whatever_a_branch_is_called(work: WorkTree) -> None:
    work.git("switch", "-qc", "b\udcff")
    with listening(work, commit_context=CONTEXT, commit_created={}) as heard:
        work.commit("fix: mend the race")

    assert [each["branch"] for each in heard.asked] == ["b?", "b\\xff"]


@proves("OPEN-57")
def test_a_bridge_that_says_nothing_costs_a_second_and_changes_nothing(work: WorkTree) -> None:
    """That it is one second, all in all, is shown in `test_bridge_client`."""
    impatient = work.with_environment(ACCORD_TIMEOUT="1")
    with listening(work) as heard:
        before = time.monotonic()
        impatient.commit("made without a session")
        took = time.monotonic() - before

    assert took >= bridge_client.BRIDGE_TIMEOUT_S == 1.0
    assert [each["action"] for each in heard.asked] == ["commit-context"]
    assert work.message() == "made without a session\n"


def test_a_session_that_decided_nothing_leaves_commits_alone(
    work: WorkTree, server: ServerProcess
) -> None:
    person = {"ACCORD_URL": server.url, "ACCORD_TOKEN": server.admin_token}
    someone = work.with_environment(**person, ACCORD_HOME=str(server.home))
    id = someone.accord("session", "create", "--name", "Idle").out.strip()
    repo = work.git("config", "accord.repo")
    bound = bridge_client.request("session-started", someone.env, {"repo": repo, "session": id})
    assert bound == {"repo": repo, "sessions": [id]}
    someone.with_environment(ACCORD_SESSION=id).commit("said in my own way")

    assert work.message() == "said in my own way\n"


@pytest.mark.parametrize(
    "answer", [[], "no", {"error": {"code": "X"}}, {"messages": 7, "fork": []}]
)
def test_a_bridge_that_talks_nonsense_is_not_believed(work: WorkTree, answer: Any) -> None:
    with listening(work, commit_context=answer):
        work.commit("made without a session")

    assert "PVP-" not in work.message()


@pytest.mark.parametrize(
    ("env", "platform"),
    [
        ({"ACCORD_HOME": "/x/y"}, "linux"),
        ({"HOME": "/home/a"}, "linux"),
        ({"HOME": "/home/a", "XDG_DATA_HOME": "/data"}, "linux"),
        ({"HOME": "/home/a", "XDG_DATA_HOME": "data"}, "linux"),
        ({"HOME": "/Users/a"}, "darwin"),
    ],
)
def test_hooks_look_where_the_server_lives(env: dict[str, str], platform: str) -> None:
    assert bridge_client.data_dir(env, platform) == str(client.home_of(env, platform))


def test_hooks_need_nothing_but_the_standard_library() -> None:
    hooks = "dispatch, message_hooks, post_commit, post_rewrite, pre_push"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from accord.git import hook, decision_share; "
        f"from accord.git.hooks import {hooks}; from accord.git.records import missing_records"
    )
    place = str(Path(bridge_client.__file__).parents[2])
    subprocess.run([sys.executable, "-I", "-S", "-c", code, place], check=True)
