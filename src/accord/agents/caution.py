"""How dangerous a command looks: by its program's name, and high where the name does not tell."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from accord.core.room.state import Category, Risk


class Judgement(NamedTuple):
    """What kind of act a command is, and how much harm it could do."""

    category: Category
    risk: Risk


SHELL, DELETE, NETWORK = Category.SHELL_EXECUTE, Category.FILE_DELETE, Category.NETWORK_REQUEST

LOOKS = Judgement(SHELL, Risk.LOW)
WORKS = Judgement(SHELL, Risk.MEDIUM)
DELETES = Judgement(DELETE, Risk.HIGH)
FETCHES = Judgement(NETWORK, Risk.MEDIUM)
REACHES_OUT = Judgement(NETWORK, Risk.HIGH)
RULES = Judgement(SHELL, Risk.CRITICAL)
ANYTHING = Judgement(SHELL, Risk.HIGH)


def _each(judgement: Judgement, names: str) -> dict[str, Judgement]:
    return dict.fromkeys(names.split(), judgement)


PROGRAMS: dict[str, Judgement] = {
    **_each(LOOKS, "basename cat date df dirname du echo file head id ls pwd stat tail true"),
    **_each(LOOKS, "uname wc whoami which"),
    **_each(DELETES, "rm rmdir shred truncate unlink"),
    **_each(FETCHES, "curl dig ping wget"),
    **_each(REACHES_OUT, "ftp nc ncat rsync scp sftp ssh telnet"),
    **_each(RULES, "dd doas fdisk mkfs mount reboot shutdown su sudo systemctl umount"),
    **_each(ANYTHING, "chgrp chmod chown kill killall pkill"),
    # These run whatever they are told to, so their own name says nothing.
    **_each(ANYTHING, "awk bash dash env eval find fish ksh node nohup nu perl php python"),
    **_each(ANYTHING, "python3 ruby sed sh tclsh time timeout watch xargs zsh"),
}
GIT: dict[str, Judgement] = {
    **_each(LOOKS, "blame cat-file describe diff log ls-files ls-tree rev-list rev-parse"),
    **_each(LOOKS, "shortlog show status"),
    **_each(DELETES, "clean rm"),
    **_each(FETCHES, "clone fetch pull"),
    **_each(REACHES_OUT, "push"),
    **_each(ANYTHING, "filter-branch rebase reset"),
}
# Options with which a verb that looks writes a file or runs a program.
GIT_ACTS = ("--o", "-o", "-O", "--ext-diff", "--textconv", "--filters")


def judge(argv: Sequence[str]) -> Judgement:
    """What is known of this command; ordinary work where nothing is."""
    program = PurePath(argv[0]).name
    known = PROGRAMS.get(program, WORKS) if program != "git" else judge_git(argv[1:])
    # A name with a path may be any program of that name.
    return ANYTHING if program != argv[0] and known in (LOOKS, WORKS) else known


def judge_git(words: Sequence[str]) -> Judgement:
    """What is known of this verb of git's."""
    verb = words[0] if words else ""
    # Options before the verb can make git run other programs.
    known = ANYTHING if verb.startswith("-") else GIT.get(verb, WORKS)
    acts = any(word.startswith(GIT_ACTS) for word in words[1:])
    return ANYTHING if acts and known is LOOKS else known


def stricter(said: Judgement, seen: Judgement) -> Judgement:
    """The worse of what an agent says of its own command and what can be seen."""
    order = list(Risk)
    category = said.category if seen.category is SHELL else seen.category
    return Judgement(category, max(said.risk, seen.risk, key=order.index))
