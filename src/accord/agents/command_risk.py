"""Estimates the risk of a command from its program's name; high if the name tells nothing."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from accord.core.room.room_settings import Category
from accord.core.room.state import Risk


class RiskJudgement(NamedTuple):
    """The category of a command and its risk."""

    category: Category
    risk: Risk


SHELL, DELETE, NETWORK = Category.SHELL_EXECUTE, Category.FILE_DELETE, Category.NETWORK_REQUEST

READ_ONLY = RiskJudgement(SHELL, Risk.LOW)
ORDINARY = RiskJudgement(SHELL, Risk.MEDIUM)
DELETION = RiskJudgement(DELETE, Risk.HIGH)
DOWNLOAD = RiskJudgement(NETWORK, Risk.MEDIUM)
REMOTE_ACCESS = RiskJudgement(NETWORK, Risk.HIGH)
SYSTEM_CONTROL = RiskJudgement(SHELL, Risk.CRITICAL)
ARBITRARY_CODE = RiskJudgement(SHELL, Risk.HIGH)


def _judge_programs(judgement: RiskJudgement, names: str) -> dict[str, RiskJudgement]:
    return dict.fromkeys(names.split(), judgement)


PROGRAM_RISKS: dict[str, RiskJudgement] = {
    **_judge_programs(
        READ_ONLY, "basename cat date df dirname du echo file head id ls pwd stat tail true"
    ),
    **_judge_programs(READ_ONLY, "uname wc whoami which"),
    **_judge_programs(DELETION, "rm rmdir shred truncate unlink"),
    **_judge_programs(DOWNLOAD, "curl dig ping wget"),
    **_judge_programs(REMOTE_ACCESS, "ftp nc ncat rsync scp sftp ssh telnet"),
    **_judge_programs(
        SYSTEM_CONTROL, "dd doas fdisk mkfs mount reboot shutdown su sudo systemctl umount"
    ),
    **_judge_programs(ARBITRARY_CODE, "chgrp chmod chown kill killall pkill"),
    # These run whatever their arguments name, so their own name tells nothing.
    **_judge_programs(
        ARBITRARY_CODE, "awk bash dash env eval find fish ksh node nohup nu perl php python"
    ),
    **_judge_programs(ARBITRARY_CODE, "python3 ruby sed sh tclsh time timeout watch xargs zsh"),
}
GIT_COMMAND_RISKS: dict[str, RiskJudgement] = {
    **_judge_programs(
        READ_ONLY, "blame cat-file describe diff log ls-files ls-tree rev-list rev-parse"
    ),
    **_judge_programs(READ_ONLY, "shortlog show status"),
    **_judge_programs(DELETION, "clean rm"),
    **_judge_programs(DOWNLOAD, "clone fetch pull"),
    **_judge_programs(REMOTE_ACCESS, "push"),
    **_judge_programs(ARBITRARY_CODE, "filter-branch rebase reset"),
}
# With these options even a read-only git command writes a file or runs a program.
GIT_WRITING_OPTIONS = ("--o", "-o", "-O", "--ext-diff", "--textconv", "--filters")


def judge_command(argv: Sequence[str]) -> RiskJudgement:
    """The judgement of this command; `ORDINARY` for unknown programs."""
    program = PurePath(argv[0]).name
    known = (
        PROGRAM_RISKS.get(program, ORDINARY) if program != "git" else judge_git_command(argv[1:])
    )
    # A path may lead to any program that happens to have a harmless name.
    return ARBITRARY_CODE if program != argv[0] and known in (READ_ONLY, ORDINARY) else known


def judge_git_command(words: Sequence[str]) -> RiskJudgement:
    """The judgement of a git command, given the words after `git`."""
    subcommand = words[0] if words else ""
    # Options before the subcommand can make git run other programs.
    known = (
        ARBITRARY_CODE
        if subcommand.startswith("-")
        else GIT_COMMAND_RISKS.get(subcommand, ORDINARY)
    )
    writes = any(word.startswith(GIT_WRITING_OPTIONS) for word in words[1:])
    return ARBITRARY_CODE if writes and known is READ_ONLY else known


def stricter_judgement(declared: RiskJudgement, judged: RiskJudgement) -> RiskJudgement:
    """The higher of the risk an agent declares and the risk judged from the command."""
    order = list(Risk)
    category = declared.category if judged.category is SHELL else judged.category
    return RiskJudgement(category, max(declared.risk, judged.risk, key=order.index))
