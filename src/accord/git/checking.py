"""`commit-msg`: a message that speaks of a session says it well; others are not our business."""

import sys
from collections.abc import Mapping

from accord.core.provenance.check import WIDEST, Rules, cleaned
from accord.core.provenance.check import check as findings
from accord.core.provenance.message import MOST_READ, parse

from .repository import Repository

# In these no letter is one byte, and git writes a message as it is.
WIDE = ("utf16", "utf32", "utf7", "ucs2", "ucs4")
LONG = f"The message is longer than {MOST_READ} characters"
UNREADABLE = (
    "i18n.commitEncoding is {coding}, so git cannot read this message back and no record is kept; "
    "`git config i18n.commitEncoding UTF-8` mends that"
)


def check(repo: Repository, draft: bytes) -> int:
    """1 where there is PVP context and the message is wrong, with the reasons."""
    text = draft.decode("utf-8", "surrogateescape")
    settings = repo.settings(r"^(accord\.|core\.commentchar$|i18n\.commitencoding$)")
    said = cleaned(text, comment_sign(settings))
    if len(said) > MOST_READ:
        if parse(said).has_context:
            say(f"{LONG}, so nothing checked it")
        return 0  # nobody wrote that by hand
    message = parse(said)
    if not message.has_context and not _only_trailers(said):
        return 0
    if _only_trailers(said):
        say("The message is empty, so nothing was committed")
        return 1
    if _is_wide(coding := settings.get("i18n.commitencoding", "")):
        say(UNREADABLE.format(coding=coding))
    return _told(said, _rules(settings))


def _is_wide(coding: str) -> bool:
    """Whether git, told so, takes the letters of the message for others."""
    return coding.lower().replace("-", "").startswith(WIDE)


def comment_sign(settings: Mapping[str, str]) -> str:
    """What begins a comment; `auto` is the usual one, as for `git interpret-trailers`."""
    sign = settings.get("core.commentchar", "")
    return "#" if sign in ("", "auto") else sign[:1]


def _only_trailers(said: str) -> bool:
    """Nobody wrote anything: what stands there is what `prepare-commit-msg` put in."""
    lines = [line for line in said.splitlines() if line.strip()]
    blank = said.startswith("\n")
    return blank and bool(lines) and parse(f"x\n\n{said.lstrip()}").body == ""


def _rules(settings: dict[str, str]) -> Rules:
    chosen = settings.get("accord.headerlength", "")
    return Rules(int(chosen)) if chosen.isdigit() else Rules(WIDEST)


def _told(said: str, rules: Rules) -> int:
    found = findings(said, rules)
    errors = [each for each in found if each.error]
    for each in errors:
        say(f"{each}. {each.mend}")
    if errors:
        say("The commit was not made; `git commit -eF .git/COMMIT_EDITMSG` goes on from there")
    return 1 if errors else 0


def say(text: str) -> None:
    """Tell whoever commits."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    print(f"accord: {plain}", file=sys.stderr)  # noqa: T201 - git shows what a hook says
