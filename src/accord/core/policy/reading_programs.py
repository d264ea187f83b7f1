"""Programs that only read, with exactly those options under which they do.

An option that is not listed here makes a command something else: options write files (`sort -o`),
run programs (`rg --pre`) or follow links (`grep -R`). A read of a program that is not listed is
for the signed policy to name.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, TypedDict, Unpack

from accord.core.policy.call_findings import names
from accord.core.policy.shell_syntax import Word


class Operands(Enum):
    """What the words that are no options mean."""

    PATHS = "paths"
    PATTERN = "a pattern, then paths"
    TEXT = "text"
    NONE = "none"


class ReadForm(NamedTuple):
    """How a program is called when it only reads.

    `flags` and `valued` are short options without and with a value, `long` those with two dashes
    (`name=` takes a value). `pattern_options` bring the pattern, so that every operand is a path.
    """

    operands: Operands = Operands.PATHS
    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    pattern_options: str = ""
    numbers: bool = False
    max_operands: int = 1_000
    min_operands: int = 0
    accepts: Callable[[Sequence[str]], bool] | None = None
    free_options: bool = False  # every word is text, options included


class ReadPaths(NamedTuple):
    """The words of a read that name files."""

    paths: tuple[Word, ...]


class ReadFormOptions(TypedDict, total=False):
    """The fields of `ReadForm` that few rows need."""

    pattern_options: str
    numbers: bool
    max_operands: int
    min_operands: int
    accepts: Callable[[Sequence[str]], bool]
    free_options: bool


def form(
    flags: str = "",
    valued: str = "",
    long: str = "",
    operands: Operands = Operands.PATHS,
    **more: Unpack[ReadFormOptions],
) -> ReadForm:
    return ReadForm(operands, flags, valued, frozenset(long.split()), **more)


PRINTING_AWK = re.compile(
    r"\s*(NR\s*(==|>=|<=|<|>)\s*\d+(\s*&&\s*NR\s*(==|>=|<=|<|>)\s*\d+)*)?"
    r"\s*(\{\s*print(\s+\$\d+(\s*,\s*\$\d+)*)?\s*\})?\s*"
)
LINES_OF_SED = re.compile(
    r"\s*(\d+|\$)(\s*,\s*(\d+|\$))?\s*p\s*(;\s*(\d+|\$)(\s*,\s*(\d+|\$))?\s*p\s*)*;?\s*"
)
SUBSTITUTION_OF_SED = re.compile(r"s/[^/\\\n]*/[^/\\\n]*/[gpI0-9]*")
REACHES_OUT_OF_JQ = re.compile(
    r"\b(env|ENV|import|include|input_filename|getpath|debug|stderr|halt_error|modulemeta|input_line_number|get_search_list)\b|\$__"
)


def prints_fields(operands: Sequence[str]) -> bool:
    """Whether a program of awk prints fields or lines, and nothing else."""
    return (
        bool(operands)
        and PRINTING_AWK.fullmatch(operands[0]) is not None
        and bool(operands[0].strip())
    )


def prints_lines(operands: Sequence[str]) -> bool:
    """Whether a script of sed prints lines or replaces text on its way to the output."""
    script = operands[0] if operands else ""
    return bool(LINES_OF_SED.fullmatch(script) or SUBSTITUTION_OF_SED.fullmatch(script))


def filters_only(operands: Sequence[str]) -> bool:
    """Whether a filter of jq sees nothing but its input."""
    return bool(operands) and not REACHES_OUT_OF_JQ.search(operands[0])


def is_date_format(operands: Sequence[str]) -> bool:
    return all(word.startswith("+") for word in operands)


def is_plain_test(operands: Sequence[str]) -> bool:
    """`-f path` and its kin; `-v` evaluates subscripts, which run commands."""
    words = [word for word in operands if word not in ("!", "]")]
    return len(words) == 2 and words[0] in TESTS


def is_plain_text(operands: Sequence[str]) -> bool:
    """No numbers of `printf` that zsh evaluates, and with them commands in their subscripts."""
    return not any("[" in word and ("$" in word or "`" in word) for word in operands)


def is_find_expression(words: Sequence[str]) -> bool:
    """Only tests and `-print` after the starting points."""
    rest = list(words)
    while rest and not rest[0].startswith(("-", "(", "!", ")")):
        rest.pop(0)
    while rest:
        word = rest.pop(0)
        if word in FIND_VALUED:
            if not rest:
                return False
            rest.pop(0)
        elif word not in FIND_PLAIN:
            return False
    return True


def starting_points(words: Sequence[Word]) -> tuple[Word, ...]:
    """The paths of `find` and `test`: what stands before an expression, or behind a test."""
    if words and words[0].text in TESTS | {"!"}:
        return tuple(word for word in words if word.text not in TESTS | {"!"})
    first = next(
        (n for n, word in enumerate(words) if word.text.startswith(("-", "(", "!", ")"))),
        len(words),
    )
    return tuple(words[:first])


TESTS = frozenset({"-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z"})
FIND_PLAIN = names(
    "-print -print0 -empty -not -a -o -and -or -prune -ls -true -false -depth -xdev -mount "
    "-readable -writable -executable ! ( ) -nouser -nogroup -daystart"
)
FIND_VALUED = names(
    "-name -iname -path -ipath -wholename -iwholename -type -maxdepth -mindepth -size -mtime "
    "-mmin -atime -amin -ctime -cmin -regex -iregex -perm -user -group -links -regextype -inum"
)

GREP = form(
    "EFGPwxvcilLnHhoqsabrzTUy",
    "ABCm",
    "ignore-case word-regexp line-regexp count files-with-matches files-without-match line-number "
    "with-filename no-filename only-matching quiet silent no-messages text recursive "
    "extended-regexp fixed-strings perl-regexp basic-regexp invert-match include= exclude= "
    "exclude-dir= color= colour= max-count= context= after-context= before-context= null",
    Operands.PATTERN,
    pattern_options="e",
    numbers=True,
)
WITHOUT_PATTERN = frozenset({"files", "type-list"})
SUM = form("bt", "", "tag text binary")
VERSION_WORDS = (("--version",), ("-V",), ("-v",), ("version",))
VERSIONED = names(
    "bash cargo clang cmake docker g++ gcc gh git go java javac make mypy node npm npx perl php "
    "pip "
    "pip3 pnpm poetry pytest python python3 ruby ruff rustc rustup tsc uv yarn"
)
# `-v` and `version` mean something else to these.
NOT_VERSION: dict[str, frozenset[str]] = {
    **dict.fromkeys(names("pytest bash java javac cmake"), names("-V -v version")),
    **dict.fromkeys(names("python python3 mypy rustup pip pip3 poetry uv"), names("-v version")),
    **dict.fromkeys(names("php rustc"), names("version")),
    **dict.fromkeys(
        names("perl make tsc ruby node gcc g++ clang npx yarn npm pnpm"), names("-V version")
    ),
    **dict.fromkeys(names("cargo ruff"), names("-v")),
    **dict.fromkeys(names("go gh"), names("-V -v")),
    **dict.fromkeys(names("git docker"), names("-V")),
}

READS: dict[str, ReadForm] = {
    "ls": form(
        "1AaBbCcdFfgGhiklmnNopqQrRsStuUvxXZ",
        "",
        "all almost-all color= color directory human-readable recursive reverse size classify "
        "full-time "
        "group-directories-first sort= time= time-style=",
    ),
    "cat": form("AbeEnstTuv", "", "number number-nonblank show-all show-ends squeeze-blank"),
    "head": form("qvz", "nc", "lines= bytes= quiet verbose", numbers=True),
    "tail": form("qvz", "nc", "lines= bytes= quiet verbose", numbers=True),
    "wc": form("clmwL", "", "lines words bytes chars max-line-length"),
    "nl": form("p", "bdfhilnsvw"),
    "tac": form("br", "s"),
    "rev": form(),
    "fold": form("bs", "w", numbers=True),
    "cut": form(
        "sz", "bcdf", ("delimiter= fields= characters= only-delimited complement output-delimiter=")
    ),
    "tr": form("cCdst", operands=Operands.TEXT),
    "paste": form("sz", "d"),
    "comm": form("123z"),
    "column": form("tx", "sco"),
    "sort": form(
        "bdfghiMnRrVuzsc",
        "kt",
        (
            "numeric-sort reverse unique human-numeric-sort version-sort key= ignore-case "
            "field-separator="
        ),
    ),
    "uniq": form("cdDiuz", "fsw", "count repeated unique ignore-case", max_operands=1),
    "diff": form(
        "abBcdeEiNnpqstTuwy",
        "UC",
        (
            "unified= unified brief ignore-all-space ignore-blank-lines side-by-side color= color "
            "new-file report-identical-files"
        ),
        min_operands=2,
        max_operands=2,
    ),
    "cmp": form("bls", "in", max_operands=2),
    "stat": form("Lft", "c", "format= printf= terse dereference"),
    "file": form("bhiILkN", "", "brief mime mime-type mime-encoding"),
    "du": form("abchHkmsSx0", "dt", "human-readable summarize total max-depth= all apparent-size"),
    "df": form("ahHiklPT", "", "human-readable total local"),
    "tree": form("aCdDfghinpqsStux", "LIP", "noreport dirsfirst gitignore"),
    "realpath": form("emsqz"),
    "readlink": form("efmnqsvz"),
    "basename": form("az", "s"),
    "dirname": form("z"),
    "md5sum": SUM,
    "sha1sum": SUM,
    "sha256sum": SUM,
    "sha512sum": SUM,
    "cksum": form(),
    "od": form("abcdfiloxsv", "AjNt"),
    "hexdump": form("bcCdoxv", "ns"),
    "xxd": form("abeiup", "cglos", max_operands=1),
    "strings": form("af", "net"),
    "grep": GREP,
    "egrep": GREP,
    "fgrep": GREP,
    "rg": form(
        "niwFlcovNHIsSxqpUu0Pa.",
        "gtTABCmdM",
        "files hidden no-ignore glob= iglob= type= type-not= max-count= max-depth= context= "
        "after-context= "
        "before-context= line-number no-line-number ignore-case smart-case case-sensitive "
        "word-regexp "
        "fixed-strings files-with-matches files-without-match count count-matches "
        "only-matching no-heading "
        "heading color= json multiline stats invert-match with-filename no-filename sort= "
        "pcre2 vimgrep null "
        "no-messages type-list max-columns= column trim",
        Operands.PATTERN,
        pattern_options="e",
    ),
    "find": form(accepts=is_find_expression, free_options=True),
    "awk": form("", "F", operands=Operands.PATTERN, accepts=prints_fields),
    "sed": form(
        "nErsuz", "", "quiet silent regexp-extended", Operands.PATTERN, accepts=prints_lines
    ),
    "jq": form(
        "rceSMCsnja",
        "",
        "raw-output compact-output sort-keys slurp null-input exit-status tab join-output "
        "color-output monochrome-output",
        Operands.PATTERN,
        accepts=filters_only,
    ),
    "echo": form(operands=Operands.TEXT, free_options=True),
    "printf": form(operands=Operands.TEXT, accepts=is_plain_text),
    "pwd": form("LP", operands=Operands.NONE),
    "true": form(operands=Operands.NONE),
    "false": form(operands=Operands.NONE),
    ":": form(operands=Operands.TEXT),
    "seq": form("w", "sf", operands=Operands.TEXT),
    "sleep": form(operands=Operands.TEXT),
    "date": form(
        "uR", "", "utc iso-8601 iso-8601= rfc-3339=", Operands.TEXT, accepts=is_date_format
    ),
    "whoami": form(operands=Operands.NONE),
    "id": form("gGnru", operands=Operands.NONE),
    "uname": form("amnoprsv", operands=Operands.NONE),
    "hostname": form("f", operands=Operands.NONE),
    "nproc": form("", "", "all", Operands.NONE),
    "arch": form(operands=Operands.NONE),
    "uptime": form("ps", operands=Operands.NONE),
    "which": form("a", operands=Operands.TEXT),
    "type": form("aptPf", operands=Operands.TEXT),
    "test": form(accepts=is_plain_test, free_options=True),
}


def read_paths(program: str, words: Sequence[Word]) -> ReadPaths | None:
    """The paths that a command reads, given the words after the program; None if it does more."""
    if len(words) == 1 and is_version_question(program, words[0].text):
        return ReadPaths(())
    row = READS.get(program)
    if row is None:
        return None
    return _OptionReader(row, words).read()


def is_version_question(program: str, word: str) -> bool:
    """Whether a program is only asked for its version."""
    known = program in VERSIONED and (word,) in VERSION_WORDS
    return known and word not in NOT_VERSION.get(program, ())


class _OptionReader:
    def __init__(self, row: ReadForm, words: Sequence[Word]) -> None:
        self._row = row
        self._rest = list(words)
        self._operands: list[Word] = []
        self._has_pattern = row.operands is not Operands.PATTERN

    def read(self) -> ReadPaths | None:
        if any(_may_become_option(word) for word in self._rest):
            return None
        if self._row.free_options:
            return self._free_form()
        while self._rest:
            word = self._rest.pop(0)
            if word.text == "--":
                self._operands += self._rest
                self._rest = []
            elif not word.text.startswith("-") or word.text == "-":
                self._operands.append(word)
            elif not self._option(word):
                return None
        return self._finish()

    def _free_form(self) -> ReadPaths | None:
        row = self._row
        if row.accepts is not None and not row.accepts([word.text for word in self._rest]):
            return None
        if row.operands is Operands.TEXT:
            return ReadPaths(tuple(word for word in self._rest if word.glob))
        return ReadPaths(starting_points(self._rest))

    def _option(self, word: Word) -> bool:
        text = word.text
        if text.startswith("--"):
            name, equals, _ = text[2:].partition("=")
            self._has_pattern = self._has_pattern or name in WITHOUT_PATTERN
            return f"{name}{equals}" in self._row.long
        if self._row.numbers and text[1:].isascii() and text[1:].isdigit():
            return True
        return self._short_options(text[1:])

    def _short_options(self, letters: str) -> bool:
        row = self._row
        for position, letter in enumerate(letters):
            if letter in row.valued + row.pattern_options:
                self._has_pattern = self._has_pattern or letter in row.pattern_options
                if position == len(letters) - 1:
                    return self._take_value()
                return True
            if letter not in row.flags:
                return False
        return True

    def _take_value(self) -> bool:
        if not self._rest:
            return False
        return not self._rest.pop(0).glob

    def _finish(self) -> ReadPaths | None:
        row = self._row
        operands = self._operands
        texts = [word.text for word in operands]
        if row.accepts is not None and not row.accepts(texts):
            return None
        if not self._has_pattern:
            if not operands:
                return None
            if operands[0].glob:
                return None  # bash may replace the pattern by names of files
            operands = operands[1:]
        if not row.min_operands <= len(operands) <= row.max_operands:
            return None
        if row.operands is Operands.NONE and operands:
            return None
        if row.operands is Operands.TEXT:
            operands = [word for word in operands if word.glob]
        return ReadPaths(tuple(operands))


def _may_become_option(word: Word) -> bool:
    """Whether bash may replace a glob by the name of a file that looks like an option."""
    return word.glob and word.raw[:1] in {"*", "?", "[", "-"}
