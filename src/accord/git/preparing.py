"""`prepare-commit-msg`: the trailers that the environment and the bridge know (OPEN-69, 70)."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from accord.core.kernel.refusal import Refused
from accord.core.provenance import message as words
from accord.core.provenance.build import trailers_of
from accord.core.provenance.check import cleaned
from accord.core.provenance.message import parse
from accord.core.provenance.participants import HUMAN, Participant, items
from accord.core.provenance.trailers import Trailer

from . import bridge, process
from .checking import LONG, comment_sign, say
from .repository import Repository, refusal

SETTINGS = r"^(accord\.|user\.name$|core\.commentchar$)"
# What the environment says, in the words of the bridge. Approvals are not among them: only the
# server knows who agreed.
TOLD = {
    "session": "PVP_SESSION_ID",
    "fork": "PVP_FORK_ID",
    "decision_type": "PVP_DECISION_TYPE",
}
FILE = ".accord.toml"
MOST_SETTINGS = 64 << 10
SHORTER = "`git commit --amend -m` with fewer words has both"
# Git without anybody's configuration, and without a repository that has one.
TOLD_GIT = frozenset({"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "XDG_CONFIG_HOME"})
UNTOLD = {
    **dict.fromkeys(("GIT_DIR", "GIT_CONFIG_GLOBAL", "HOME"), os.devnull),
    "GIT_CONFIG_NOSYSTEM": "1",
}
LISTS = {"messages": "PVP_MESSAGES", "decision_by": "PVP_DECISION_BY"}


def prepare(repo: Repository, file: str, raw: bytes, source: str) -> None:
    """Add each trailer that is known and not there; a commit without a session is left alone."""
    settings = repo.settings(SETTINGS)
    comment = comment_sign(settings)
    draft = cleaned(raw.decode("utf-8", "surrogateescape"), comment)
    if len(draft) > words.MOST_READ:
        if known(repo, os.environ, settings):
            say(f"{LONG}, so it gets no trailers and no record; {SHORTER}")
        return  # nobody wrote that by hand
    if source and not draft.strip():
        return  # `-m ""`: nothing to add to
    context = known(repo, os.environ, settings)
    there = {each.key.lower() for each in parse(draft).trailers}
    wanted = [each for each in _trailers(context, settings) if each.key.lower() not in there]
    if not wanted or (not context and not parse(draft).has_context):
        return
    if draft.strip():
        _write(file, _added(raw, wanted, comment))
    else:  # below two empty lines for the text
        block = "".join(f"{each.key}: {each.value}\n" for each in wanted)
        _write(file, b"\n\n" + block.encode() + b"\n" + raw.lstrip(b"\n"))


def _added(raw: bytes, wanted: list[Trailer], comment: str) -> bytes:
    """With git's own tool, which no configuration tells to write something else, or to run it."""
    flags = ("--if-exists=add", "--if-missing=add", "--where=end", "--no-divider")
    added = (f"--trailer={each.key}: {each.value}" for each in wanted)
    words = ("-c", f"core.commentChar={comment}", "interpret-trailers", *flags, *added)
    env = process.environment(led=False)
    done = process.run(words, {k: v for k, v in env.items() if k not in TOLD_GIT} | UNTOLD, raw)
    if done.code:
        raise refusal(done)
    return done.out


def _write(file: str, made: bytes) -> None:
    part = f"{file}.accord"  # a full disk must not cost somebody their words
    try:
        with open(part, "wb") as draft:  # noqa: PTH123 - hooks have no `pathlib`
            draft.write(made)
        os.replace(part, file)  # noqa: PTH105 - the same
    except OSError:
        with suppress(OSError):
            os.unlink(part)  # noqa: PTH108 - the same
        raise


def _trailers(context: Mapping[str, Any], settings: Mapping[str, str]) -> Iterator[Trailer]:
    aliases = settings.get("accord.aliastrailers") == "true"
    found = trailers_of(context, aliases=aliases)
    yield from found
    if not any(each.key == words.DECISION_BY for each in found):
        name = settings.get("user.name") or os.environ.get("GIT_AUTHOR_NAME") or "unknown"
        yield Trailer(words.DECISION_BY, str(Participant(HUMAN, " ".join(_readable(name).split()))))


def _readable(name: str) -> str:
    """As far as it is UTF-8: a configuration may be older than that."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def known(repo: Repository, env: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, Any]:
    """What is known of the decision: the environment's word before the bridge's."""
    told = dict(_told(env))
    if not bridge.in_reach(env):
        return told
    session = told.get("session") or env.get("ACCORD_SESSION") or in_file(repo)
    asked = {
        "repo": settings.get("accord.repo"),
        "session": session,
        "fork": told.get("fork"),
        "branch": repo.branch(),
    }
    context = bridge.ask("commit-context", env, asked) or {}
    if not context.get("decision"):
        return told  # a session that decided nothing says nothing
    if told.get("session") and context.get("session") not in (None, told["session"]):
        return told  # it speaks of another session
    return {**context, **told}


def _told(env: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name, variable in TOLD.items():
        if (value := env.get(variable, "").strip()) and _is_plain(value):
            yield name, value
    for name, variable in LISTS.items():
        if (value := env.get(variable, "").strip()) and _is_plain(value):
            yield name, list(items(value))
    with suppress(KeyError, ValueError):
        yield "confidence", float(env["PVP_CONFIDENCE"])


def _is_plain(value: str) -> bool:
    """Nothing that a trailer cannot carry (OPEN-72)."""
    try:
        trailers_of({"session": value})
    except Refused:
        return False
    return True


def in_file(repo: Repository) -> str:
    """The session that an untracked `.accord.toml` names; one that was cloned is a stranger's."""
    if not os.path.isfile(FILE):  # noqa: PTH113 - the same; nobody may ever write to a pipe
        return ""
    try:
        with open(FILE, "rb") as file:  # noqa: PTH123 - the same
            said = file.read(MOST_SETTINGS + 1)
        import tomllib

        found = tomllib.loads(said.decode()).get("session") if len(said) <= MOST_SETTINGS else ""
    except (OSError, ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) and not repo.is_tracked(FILE) else ""
