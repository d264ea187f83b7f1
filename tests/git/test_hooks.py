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

from accord import settings
from accord.git import bridge
from accord.git.hook import HOOKS
from tests.helpers.patience import patient
from tests.helpers.server import ServerProcess
from tests.helpers.worktree import Work
from tests.spec import proves

FAKE = '#!/bin/sh\necho "$0 $*" >> ran.log\ncat >> ran.log\n'


def hooks(work: Work) -> Path:
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
def test_hooks_that_are_there_run_first_and_come_back_to_the_byte(plain: Work) -> None:
    for name in ("prepare-commit-msg", "pre-push", "post-commit"):
        put(hooks(plain) / name)
    put(hooks(plain) / "commit-msg", "#!/bin/sh\nexit 7\n")
    (hooks(plain) / "commit-msg").chmod(0o644)
    before = everything(hooks(plain))
    assert plain.accord("git", "install").code == 0
    once = everything(hooks(plain))
    assert plain.accord("git", "install").code == 0
    assert everything(hooks(plain)) == once
    plain.told(PVP_SESSION_ID="ses_1").commit("feat: begin")
    ran = (plain.path / "ran.log").read_text()

    assert "before-accord .git/COMMIT_EDITMSG message" in ran
    assert "post-commit" in ran
    assert plain.decisions()
    assert plain.accord("git", "uninstall").code == 0
    assert everything(hooks(plain)) == before


def test_a_hook_that_says_no_is_still_obeyed(plain: Work) -> None:
    put(hooks(plain) / "commit-msg", "#!/bin/sh\necho no >&2\nexit 3\n")
    plain.accord("git", "install")
    plain.write("a.txt", "a")
    ran = plain.run("git", "commit", "-qm", "feat: begin")

    assert (ran.code, ran.err) == (1, "no\n")


def test_a_hook_that_fails_after_the_fact_costs_no_record(plain: Work) -> None:
    """Git does not care how these end."""
    for name in ("post-commit", "post-rewrite", "post-merge"):
        put(hooks(plain) / name, '#!/bin/sh\necho "$0" >> ran.log\nexit 3\n')
    plain.accord("git", "install")
    session = plain.told(PVP_SESSION_ID="ses_1")
    session.commit("feat: begin")
    made = plain.decisions()
    plain.git("commit", "-q", "--amend", "-m", "feat: begin again")

    assert len(made) == 1
    assert plain.decisions() == made
    assert plain.run(".git/hooks/post-commit").code == 3
    assert "post-rewrite" in (plain.path / "ran.log").read_text()


def test_what_git_tells_a_hook_reaches_both(plain: Work, tmp_path: Path) -> None:
    put(hooks(plain) / "pre-push")
    plain.accord("git", "install")
    remote = Work.new(tmp_path, "remote", "--bare")
    sha = plain.commit("feat: begin")
    plain.git("push", "-q", str(remote.path), "main")

    assert (
        f"refs/heads/main {sha} refs/heads/main {'0' * 40}\n"
        in (plain.path / "ran.log").read_text()
    )


def test_the_configured_folder_of_hooks_is_used(plain: Work, tmp_path: Path) -> None:
    plain.git("config", "core.hooksPath", str(tmp_path / "shared hooks"))
    ran = plain.accord("git", "install")
    plain.told(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert "leads out of this repository" in ran.out
    assert plain.decisions()
    assert not [each for each in hooks(plain).glob("*") if each.suffix != ".sample"]
    plain.accord("git", "uninstall")
    assert list((tmp_path / "shared hooks").iterdir()) == []


def test_a_folder_of_hooks_that_repositories_share_serves_each_as_itself(
    plain: Work, tmp_path: Path
) -> None:
    other = Work.new(tmp_path, "other")
    for each in (plain, other):
        each.git("config", "core.hooksPath", str(tmp_path / "shared"))
        assert each.accord("git", "install").code == 0
        each.told(PVP_SESSION_ID="ses_1").commit(f"feat: begin {each.path.name}")
    assert len({*plain.decisions(), *other.decisions()}) == 2
    assert plain.git("config", "accord.repo") != other.git("config", "accord.repo")
    assert other.accord("git", "uninstall").code == 0

    plain.told(PVP_SESSION_ID="ses_1").commit("no type at all", "b.txt")
    assert plain.message() == "no type at all\n"


def test_the_hooks_of_one_repository_do_not_run_in_a_submodule_without(
    session: Work, tmp_path: Path
) -> None:
    inner = Work.new(tmp_path, "inner")
    inner.commit("begin")
    session.commit("feat: begin")
    flags = ("-c", "protocol.file.allow=always")
    session.git(*flags, "submodule", "add", "-q", str(inner.path), "sub")
    sub = session.at(session.path / "sub")
    sub.commit("said in my own way")

    assert sub.message() == "said in my own way\n"


def test_a_repository_whose_directory_is_named_by_the_environment(plain: Work) -> None:
    """As people keep their settings: `git --git-dir=… --work-tree=…`."""
    plain.git("init", "-q", "--separate-git-dir", str(plain.home / "apart"))
    (plain.path / ".git").unlink()
    led = {"GIT_DIR": str(plain.home / "apart"), "GIT_WORK_TREE": str(plain.path)}
    someone = plain.told(**led)
    assert someone.accord("git", "install").code == 0
    someone.told(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert someone.decisions()


def test_a_python_or_a_package_that_is_gone_lets_commits_pass(work: Work) -> None:
    for name in HOOKS:
        path = hooks(work) / name
        path.write_text(path.read_text().replace(str(Path(bridge.__file__).parents[2]), "/nowhere"))
    work.told(PVP_SESSION_ID="ses_1").commit("no type at all")
    for name in HOOKS:
        path = hooks(work) / name
        path.write_text(path.read_text().replace(sys.executable, "/no/python"))
    work.told(PVP_SESSION_ID="ses_1").commit("no type at all", "b.txt")

    assert work.message() == "no type at all\n"


def test_a_package_that_is_broken_lets_commits_pass(work: Work, tmp_path: Path) -> None:
    (tmp_path / "accord" / "git").mkdir(parents=True)
    (tmp_path / "accord" / "git" / "hook.py").write_text("this is no Python")
    for name in HOOKS:
        path = hooks(work) / name
        path.write_text(
            path.read_text().replace(str(Path(bridge.__file__).parents[2]), str(tmp_path))
        )
    work.told(PVP_SESSION_ID="ses_1").commit("no type at all")

    assert work.message() == "no type at all\n"


def test_an_older_package_is_run_as_it_was(work: Work, tmp_path: Path) -> None:
    (tmp_path / "accord" / "git").mkdir(parents=True)
    says_no = "def main(words):\n    return words[0] == 'commit-msg'\n"
    (tmp_path / "accord" / "git" / "hook.py").write_text(says_no)
    for name in HOOKS:
        path = hooks(work) / name
        path.write_text(
            path.read_text().replace(str(Path(bridge.__file__).parents[2]), str(tmp_path))
        )
    work.commit("said in my own way")

    assert work.run("git", "commit", "-q", "--allow-empty", "-m", "about PVP").code == 1


def test_a_session_that_came_with_the_repository_is_not_ours(work: Work) -> None:
    work.write(".accord.toml", 'session = "ses_stranger"')
    with listening(work, commit_context={}) as heard:
        work.commit("made without a session")
        work.git("rm", "-q", "--cached", ".accord.toml")
        work.git("commit", "-qm", "made by hand")

    asked = [each.get("session") for each in heard.asked if each["action"] == "commit-context"]
    assert asked == [None, "ses_stranger"]


def test_files_of_the_repository_are_never_imported(session: Work) -> None:
    for name in ("json.py", "accord.py", "subprocess.py", "sitecustomize.py"):
        session.write(name, "raise SystemExit('taken over')")
    session.git("commit", "-qm", "feat: begin")

    assert session.decisions()


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
            with peer, peer.makefile("rwb") as lines:
                said = json.loads(lines.readline())
                self.asked.append(said)
                answer = self._answers.get(said["action"])
                if answer is None:
                    lines.readline()  # until they hang up
                else:
                    lines.write(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        self._server.close()


@contextmanager
def listening(work: Work, **answers: Any) -> Iterator[Bridge]:
    """Somebody is there; hooks wait for what is answered, however long that takes here."""
    made = Bridge(
        Path(work.env["ACCORD_HOME"]), {k.replace("_", "-"): v for k, v in answers.items()}
    )
    if answers:
        patient(hooks(work))
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


def test_the_bridge_says_what_the_session_knows(work: Work) -> None:
    answers = {"commit_context": CONTEXT, "commit_created": {"note": RECORD, "decision": "x"}}
    with listening(work, **answers) as heard:
        work.commit("fix: mend the race")

    assert work.trailers()["Approved-By"] == "human:bob"
    assert work.trailers()["PVP-Decision-Type"] == "correction"
    assert work.decisions() == [CONTEXT["decision"]]
    assert [each["action"] for each in heard.asked] == ["commit-context", "commit-created"]
    created = heard.asked[1]
    assert created["repo"] == work.git("config", "accord.repo")
    assert (created["sha"], created["files"]) == (work.head(), ["file.txt"])
    shown = work.accord("why", "file.txt:1").out
    assert "approved by  human:bob for write_file" in shown
    assert "instead of   a mutex: too slow" in shown
    assert "Mend the race" in shown


def test_the_environment_beats_the_bridge(session: Work) -> None:
    context = {**CONTEXT, "session": session.env["PVP_SESSION_ID"]}
    with listening(session, commit_context=context, commit_created={}):
        session.commit("fix: mend the race")

    assert session.trailers()["PVP-Messages"] == "msg-01,msg-05"
    assert session.trailers()["PVP-Decision"] == CONTEXT["decision"]


@pytest.mark.parametrize("kind", ["deep", "long", "pipe"])
def test_settings_that_nobody_can_read_cost_no_trailer(work: Work, kind: str) -> None:
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


def test_the_bridge_is_told_text_whatever_a_branch_is_called(work: Work) -> None:
    work.git("switch", "-qc", "b\udcff")
    with listening(work, commit_context=CONTEXT, commit_created={}) as heard:
        work.commit("fix: mend the race")

    assert [each["branch"] for each in heard.asked] == ["b?", "b\\xff"]


@proves("OPEN-57")
def test_a_bridge_that_says_nothing_costs_a_second_and_changes_nothing(work: Work) -> None:
    """That it is one second, all in all, is shown in `test_reach`."""
    with listening(work) as heard:
        before = time.monotonic()
        work.commit("made without a session")
        took = time.monotonic() - before

    assert took >= bridge.PATIENCE_S == 1.0
    assert [each["action"] for each in heard.asked] == ["commit-context"]
    assert work.message() == "made without a session\n"


def test_a_session_that_decided_nothing_leaves_commits_alone(
    work: Work, server: ServerProcess
) -> None:
    person = {"ACCORD_URL": server.url, "ACCORD_TOKEN": server.admin_token}
    someone = work.told(**person, ACCORD_HOME=str(server.home))
    id = someone.accord("session", "create", "--name", "Idle").out.strip()
    repo = work.git("config", "accord.repo")
    bound = bridge.ask("session-started", someone.env, {"repo": repo, "session": id})
    assert bound == {"repo": repo, "sessions": [id]}
    someone.told(ACCORD_SESSION=id).commit("said in my own way")

    assert work.message() == "said in my own way\n"


@pytest.mark.parametrize(
    "answer", [[], "no", {"error": {"code": "X"}}, {"messages": 7, "fork": []}]
)
def test_a_bridge_that_talks_nonsense_is_not_believed(work: Work, answer: Any) -> None:
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
    assert bridge.home(env, platform) == str(settings.home_of(env, platform))


def test_hooks_need_nothing_but_the_standard_library() -> None:
    names = "hook, preparing, checking, linking, pushing, healing, coverage"
    code = f"import sys; sys.path.insert(0, sys.argv[1]); from accord.git import {names}"
    place = str(Path(bridge.__file__).parents[2])
    subprocess.run([sys.executable, "-I", "-S", "-c", code, place], check=True)
