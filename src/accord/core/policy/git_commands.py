"""Git's commands: which only read, with which options, and what the others do.

Git accepts any beginning of a long option, so only whole names are listed. What a repository's own
configuration runs (`core.fsmonitor`, a text converter) is written by `git config` or into `.git`,
and both are gated.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypedDict, Unpack

from accord.core.policy.call_findings import names
from accord.core.policy.shell_syntax import Word
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

GLOBAL_FLAGS = frozenset({"--no-pager", "--no-optional-locks", "--literal-pathspecs"})
# Signatures are checked by running gpg.
RUNS_GPG = re.compile(r"%G|show-signature|%\(signature")

DIFF_LONG = (
    "stat stat= numstat shortstat name-only name-status summary patch no-patch raw color color= "
    "no-color word-diff word-diff= unified= cached staged diff-filter= find-renames find-renames= "
    "no-renames ignore-all-space ignore-space-change ignore-blank-lines ignore-space-at-eol "
    "exit-code quiet no-ext-diff no-textconv full-index binary abbrev abbrev= function-context "
    "merge-base check dirstat pickaxe-regex relative submodule= no-prefix minimal patience "
    "histogram "
    "color-words"
)
LOG_LONG = (
    f"{DIFF_LONG} all oneline graph decorate decorate= no-decorate pretty pretty= format= "
    f"since= until= after= "
    "before= author= committer= grep= max-count= skip= follow reverse first-parent merges "
    "no-merges date= abbrev-commit no-abbrev-commit topo-order date-order author-date-order "
    "branches "
    "branches= tags tags= remotes remotes= left-right cherry-pick cherry-mark boundary source "
    "parents "
    "children all-match invert-grep regexp-ignore-case extended-regexp fixed-strings count no-walk "
    "full-history simplify-merges ancestry-path root notes no-notes cc remerge-diff objects "
    "no-mailmap use-mailmap show-notes no-color-moved glob= exclude= not numbered summary email"
)
DIFF_SHORT, DIFF_VALUED = "pusawbzMCDWRB", "USGln"
LOG_SHORT = "pusawbzMCDicmEFgtq"


class GitForm(NamedTuple):
    """The options with which a command of git only reads."""

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    max_operands: int = 1_000
    min_operands: int = 0
    numbers: bool = False
    needs: frozenset[str] = frozenset()  # with operands, one of these options has to be there


class GitFormOptions(TypedDict, total=False):
    """The fields of `GitForm` that few rows need."""

    max_operands: int
    min_operands: int
    numbers: bool
    needs: frozenset[str]


def row(
    flags: str = "", valued: str = "", long: str = "", **more: Unpack[GitFormOptions]
) -> GitForm:
    return GitForm(flags, valued, frozenset(long.split()), **more)


LOG = row(LOG_SHORT, "SGLnU", LOG_LONG, numbers=True)
DIFF = row(DIFF_SHORT, "USGl", DIFF_LONG)
GIT_READS: dict[str, GitForm] = {
    "status": row(
        "sbvz",
        "",
        "short branch porcelain porcelain= long ignored ignored= untracked-files "
        "untracked-files= verbose "
        "show-stash ahead-behind no-ahead-behind no-renames column no-column",
    ),
    "log": LOG,
    "whatchanged": LOG,
    "show": LOG,
    "diff": DIFF,
    "diff-tree": row("prtmsczv", "", f"{DIFF_LONG} root no-commit-id cc pretty= format="),
    "diff-index": row("pmsz", "", DIFF_LONG),
    "diff-files": row("pqsz", "", DIFF_LONG),
    "shortlog": row(
        "nsec", "", "numbered summary email all since= until= no-merges", min_operands=1
    ),
    "blame": row("lstfnwecpbMC", "L", "porcelain line-porcelain date= since= show-email root"),
    "annotate": row("lt", "L"),
    "rev-list": row("", "n", LOG_LONG, numbers=True),
    "rev-parse": row(
        "q",
        "",
        "short short= verify quiet abbrev-ref abbrev-ref= symbolic-full-name show-toplevel "
        "show-prefix show-cdup "
        "git-dir git-common-dir absolute-git-dir is-inside-work-tree is-inside-git-dir "
        "is-bare-repository all "
        "branches tags remotes show-superproject-working-tree is-shallow-repository",
    ),
    "ls-files": row(
        "cdmoistuvzf",
        "x",
        "cached deleted modified others ignored stage unmerged exclude= exclude-standard "
        "full-name error-unmatch "
        "directory no-empty-directory eol abbrev",
    ),
    "ls-tree": row(
        "drtlz", "", ("name-only name-status long full-name full-tree abbrev abbrev= object-only")
    ),
    "cat-file": row("ptse", max_operands=2),
    "describe": row(
        "",
        "",
        ("all tags always long abbrev= exact-match match= exclude= first-parent dirty contains"),
    ),
    "name-rev": row("", "", "tags name-only always all"),
    "merge-base": row("a", "", "all is-ancestor octopus independent fork-point"),
    "for-each-ref": row("", "", "format= sort= count= contains= merged= no-merged= points-at="),
    "show-ref": row(
        "dsq", "", ("heads tags branches hash hash= dereference quiet verify head abbrev abbrev=")
    ),
    "show-branch": row("ar", "", "all remotes list topo-order sha1-name no-name"),
    "branch": row(
        "arv",
        "",
        "all remotes list show-current verbose sort= format= contains= merged= no-merged= "
        "column no-column color= no-color merged no-merged",
        max_operands=0,
    ),
    "tag": row(
        "ln",
        "",
        "list sort= format= contains= points-at= column no-column",
        needs=frozenset({"-l", "--list"}),
    ),
    "remote": row("v", "", "verbose", max_operands=0),
    "remote get-url": row("", "", "all push", max_operands=1),
    "stash list": row("ps", "n", "stat oneline date= format= pretty=", max_operands=0),
    "stash show": row("psu", "", "stat name-only name-status patch numstat", max_operands=1),
    "reflog": row(
        "", "n", "date= oneline format= pretty= all max-count=", max_operands=0, numbers=True
    ),
    "worktree list": row("vz", "", "porcelain verbose", max_operands=0),
    "submodule status": row("", "", "recursive cached", max_operands=0),
    "notes show": row(max_operands=1),
    "notes list": row(max_operands=1),
    "count-objects": row("vH", "", "verbose human-readable", max_operands=0),
    "check-ignore": row("qvnz", "", "quiet verbose non-matching no-index", min_operands=1),
    "check-attr": row("az", "", "all", min_operands=1),
    "cherry": row("v", "", "abbrev="),
    "grep": row(
        "ivwhHEFGPlLnIcoaqWpz",
        "eABCm",
        "ignore-case word-regexp line-number count files-with-matches files-without-match "
        "name-only "
        "extended-regexp fixed-strings perl-regexp cached untracked heading break "
        "show-function function-context "
        "max-depth= only-matching column and or not all-match quiet text full-name context= "
        "after-context= before-context=",
        numbers=True,
    ),
}
TWO_WORD_COMMANDS = frozenset(name.split()[0] for name in GIT_READS if " " in name)
READABLE_SETTING = re.compile(
    r"(user\.(name|email)|core\.[\w-]+|branch\.[\w./-]+|remote\.[\w./-]+\.(url|fetch)|init\.\w+|accord\.\w+)",
    re.IGNORECASE,
)


class GitMeaning(NamedTuple):
    """What a command of git does."""

    category: Category
    risk: Risk
    why: str


WRITES = GitMeaning(Category.FILE_WRITE, Risk.MEDIUM, "changes the repository")
REWRITES = GitMeaning(Category.FILE_WRITE, Risk.HIGH, "discards or rewrites work")
FETCHES = GitMeaning(Category.NETWORK_REQUEST, Risk.MEDIUM, "talks to a remote")
DELETES = GitMeaning(Category.FILE_DELETE, Risk.HIGH, "deletes files")
PUSHES = GitMeaning(Category.DEPLOY, Risk.HIGH, "sends commits to a remote")
RUNS = GitMeaning(Category.SHELL_EXECUTE, Risk.HIGH, "can make git run any program")
UNKNOWN = GitMeaning(
    Category.SHELL_EXECUTE, Risk.MEDIUM, "is not a command of git that Accord knows"
)

GIT_MEANINGS: dict[str, GitMeaning] = {
    **dict.fromkeys(
        names(
            "add am apply bisect branch checkout cherry-pick commit commit-tree gc hash-object "
            "init "
            "maintenance merge mktree mv notes pack-refs read-tree reflog remote repack restore "
            "revert sparse-checkout "
            "stash switch symbolic-ref tag update-index update-ref worktree write-tree rerere "
            "diff log show status "
            "blame grep ls-files format-patch archive bundle"
        ),
        WRITES,
    ),
    **dict.fromkeys(
        names("rebase reset filter-branch filter-repo prune replace fast-import"), REWRITES
    ),
    **dict.fromkeys(names("fetch pull clone ls-remote submodule remote-http lfs"), FETCHES),
    **dict.fromkeys(names("clean rm"), DELETES),
    **dict.fromkeys(names("push send-email send-pack svn p4 request-pull"), PUSHES),
    **dict.fromkeys(
        names(
            "config credential daemon difftool mergetool filter-process hook instaweb shell "
            "upload-pack receive-pack "
            "for-each-repo web--browse help var credential-store credential-cache"
        ),
        RUNS,
    ),
}
DISCARDING: dict[str, frozenset[str]] = {
    "checkout": names("-- --force -f ."),
    "switch": names("--discard-changes --force -f"),
    "restore": names("--worktree -W ."),
    "stash": names("clear drop"),
    "branch": names("--delete -D -d"),
    "tag": names("--delete -d"),
    "worktree": names("prune remove"),
}
COMMAND_RUNNING = names(
    "--exec --ext-diff --open-files-in-pager --receive-pack --textconv --upload-pack -u -x"
)


class GitCall(NamedTuple):
    """A git command taken apart; `folders` are those of `-C`."""

    subcommand: str
    words: tuple[Word, ...]
    folders: tuple[Word, ...]
    strange: bool  # an option before the command that changes what git runs


def take_apart(words: Sequence[Word]) -> GitCall:
    """The command of git in the words after `git`."""
    rest, folders, strange = list(words), [], False
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "-C" and rest:
            folders.append(rest.pop(0))
        elif option not in GLOBAL_FLAGS:
            strange = True
            if option in {"-c", "--git-dir", "--work-tree", "--namespace", "--config-env"} and rest:
                rest.pop(0)
    name = rest.pop(0).text if rest else ""
    return GitCall(name, tuple(rest), tuple(folders), strange)


def git_read_paths(call: GitCall) -> tuple[Word, ...] | None:
    """What a command of git reads besides the repository; None if it does more than read."""
    if call.strange:
        return None
    name, words = call.subcommand, list(call.words)
    if name == "config":
        return _setting(words)
    both = f"{name} {words[0].text}" if words else ""
    if name in TWO_WORD_COMMANDS and both in GIT_READS:
        name = both
        words.pop(0)
    form = GIT_READS.get(name)
    if form is None:
        return None
    operands = _operands(form, words)
    if operands is None:
        return None
    parts = (Word(word.text.split(":", 1)[1]) for word in operands if ":" in word.text)
    return (*call.folders, *operands, *parts)


def _setting(words: Sequence[Word]) -> tuple[Word, ...] | None:
    texts = [word.text for word in words]
    is_get = len(texts) == 2 and texts[0] == "--get"
    return () if is_get and READABLE_SETTING.fullmatch(texts[1]) else None


def _operands(form: GitForm, words: Sequence[Word]) -> tuple[Word, ...] | None:
    rest, operands, options = list(words), [], set()
    while rest:
        word = rest.pop(0)
        text = word.text
        if word.glob and word.raw[:1] in {"*", "?", "[", "-"}:
            return None
        if text == "--":
            operands += rest
            break
        if not text.startswith("-") or text == "-":
            operands.append(word)
            continue
        options.add(text)
        if RUNS_GPG.search(text) or not _is_allowed(form, text, rest):
            return None
    if not form.min_operands <= len(operands) <= form.max_operands:
        return None
    if form.needs and operands and not form.needs & options:
        return None
    return tuple(operands)


def _is_allowed(form: GitForm, text: str, rest: list[Word]) -> bool:
    if text.startswith("--"):
        name, equals, _ = text[2:].partition("=")
        return f"{name}{equals}" in form.long
    if form.numbers and text[1:].isascii() and text[1:].isdigit():
        return True
    for position, letter in enumerate(text[1:], 2):
        if letter in form.valued:
            return bool(text[position:]) or (bool(rest) and not rest.pop(0).glob)
        if letter not in form.flags:
            # `-M50%` and `-U3` carry their number.
            return (
                letter.isdigit()
                and text[position - 2] in "MCBlU"
                and text[position - 1 :].rstrip("%").isdigit()
            )
    return True


def git_meaning(call: GitCall) -> GitMeaning:
    """What a command that does more than read does."""
    texts = {word.text for word in call.words}
    names = {text.split("=")[0] for text in texts}
    if call.strange or (
        names & COMMAND_RUNNING
        and call.subcommand not in {"push", "add", "commit", "clean", "stash"}
    ):
        return RUNS
    if call.subcommand in DISCARDING and texts & DISCARDING[call.subcommand]:
        return REWRITES
    return GIT_MEANINGS.get(call.subcommand, UNKNOWN)
