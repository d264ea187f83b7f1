"""Commands that no approval lets through: those that decide, and those that open a prompt.

What is typed into an open program later reaches no hook (Codex' `write_stdin`), so it could not be
gated. The commands that decide are for people.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from accord.core.policy.program_effects import (
    CONSOLE_COMMANDS,
    CONSOLES,
    EDITORS,
    PAGERS,
    SCREENS,
    SHELLS,
)
from accord.core.policy.shell_syntax import SimpleCommand

# Commands of Accord that vote, sign, grant, invite, log in, issue tokens or take people out.
DECIDING = frozenset(
    {
        *(("approve",), ("reject",), ("login",), ("logout",), ("invite",), ("token",), ("keys",)),
        *(("policy", "sign"), ("policy", "grant"), ("policy", "revoke"), ("people",), ("join",)),
        *(("session", "remove"), ("session", "end"), ("session", "join"), ("connect",)),
        *(("disconnect",), ("serve",), ("daemon",), ("restore",), ("backup",), ("webhook",)),
        *(("agents", "resume"), ("agents", "pause"), ("service",), ("store",), ("compact",)),
        *(("upgrade",), ("devices",), ("supervise",), ("stdio",), ("wakes",), ("agent",)),
    }
)
DECIDING_WORDS = re.compile(
    r"\baccord\b.*\b(approve|reject|login|logout|invite|token|keys|sign|grant|revoke|people|connect)\b",
    re.DOTALL,
)
OWN_SECRETS = re.compile(r"ACCORD_TOKEN|ACCORD_HOME|profiles\.toml|daemon\.sock|accord/keys")
TERMINAL_INPUT = frozenset({"/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0", "-"})
INTERACTIVE_GIT = frozenset({"-i", "--interactive", "-p", "--patch", "-e", "--edit"})
PATCHING_GIT = frozenset(
    {"add", "checkout", "commit", "reset", "restore", "stash", "rebase", "clean"}
)
INPUT_RUNNERS = frozenset(
    {"xargs", "parallel", "at", "batch", "source", ".", "nc", "ncat", "netcat", "socat"}
)
CONTAINER_TERMINAL = re.compile(r"-[a-zA-Z]*i[a-zA-Z]*|--interactive(=true)?|--tty|-t")
CONTAINERS = frozenset({"docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose"})
SSH_VALUED = "BbcDEeFIiJLlmOopQRSWw"
DECIDES = "decides in the name of a person, which agents may not do"


def decides(program: str, words: Sequence[str]) -> str:
    """Why this command of Accord is refused to agents; empty if it is not."""
    if program != "accord":
        return ""
    verbs = [word for word in words if not word.startswith("-")][:2]
    if (
        words
        and words[0].startswith("-")
        and words[0] not in {"--version", "--help", "-h", "--json"}
    ):
        return f"accord {words[0]} … {DECIDES}"
    for length in (1, 2):
        if tuple(verbs[:length]) in DECIDING:
            return f"accord {' '.join(verbs[:length])} {DECIDES}"
    return ""


def hides_decision(text: str) -> str:
    """Why a text that is not understood is refused: it names our commands or our secrets."""
    if DECIDING_WORDS.search(text):
        return "it names a command of Accord that agents may not run"
    if OWN_SECRETS.search(text):
        return "it names secrets of Accord that agents may not read"
    return ""


def opens_prompt(program: str, words: Sequence[str], command: SimpleCommand) -> str:
    """Why a program waits for typed input; empty if it does not, as far as is known."""
    typed = not command.has_input
    for programs, question in PROMPTS:
        if program in programs:
            return question(program, words, typed=typed)
    return ""


def editor_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    batch = {"-batch", "--batch", "-es", "-Es"} & {*words}
    return "" if batch else f"{program} opens an editor"


def pager_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    return f"{program} waits for keys; use cat, head or tail"


def screen_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    return f"{program} opens a screen of its own"


def input_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    reads_terminal = program not in {"source", "."} or TERMINAL_INPUT & {*words}
    return f"{program} would use what is typed into it" if typed and reads_terminal else ""


def container_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    starts = {"exec", "run", "attach", "start"} & {*words}
    interactive = "attach" in words or any(CONTAINER_TERMINAL.fullmatch(word) for word in words)
    return f"{program} with a terminal opens a prompt" if starts and interactive else ""


def user_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    asks_for_shell = {"-i", "-s", "--login", "--shell"} & {*words}
    alone = program == "su" and not {"-c", "--command"} & {*words}
    return f"{program} opens a shell" if asks_for_shell or alone else ""


def init_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    asks = words[:1] == ["init"] and not {"-y", "--yes"} & {*words}
    return f"{program} init asks questions; use -y" if asks else ""


def shell_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    if words and words[0] in {"--version", "--help"}:
        return ""
    if program == "busybox":
        return "" if words and words[0] not in SHELLS else "busybox opens a shell"
    options = [word for word in words if word.startswith(("-", "+"))]
    short = "".join(word[1:] for word in options if not word.startswith("--"))
    has_code = "c" in short
    scripts = [word for word in words if not word.startswith(("-", "+"))]
    if "i" in short or "--interactive" in options or ("--login" in options and not scripts):
        return f"{program} would open a prompt"
    from_terminal = not has_code and (not scripts or "s" in short or scripts[0] in TERMINAL_INPUT)
    return f"{program} would run what is typed into it" if from_terminal and typed else ""


def console_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    if {"-i", "--interactive"} & {*words} and program not in {"perl", "ruby", "sed"}:
        return f"{program} -i opens a prompt"
    if words[:2] in (["-m", "pdb"], ["-m", "code"], ["-m", "IPython"], ["-m", "asyncio"]):
        return f"{program} -m {words[1]} opens a prompt"
    if program in {"gdb", "lldb"}:
        return "" if {"--batch", "-batch", "-b"} & {*words} else f"{program} opens a prompt"
    commands = any(
        word.split("=")[0] in CONSOLE_COMMANDS or re.match(r"-[cefmrpx].", word) for word in words
    )
    operands = [word for word in words if not word.startswith("-")]
    is_database = program in {
        "psql",
        "mysql",
        "mariadb",
        "mongo",
        "mongosh",
        "redis-cli",
        "sqlplus",
        "cqlsh",
        "duckdb",
    }
    needed = 2 if program == "sqlite3" else 1
    if program == "redis-cli":
        is_database = not operands
    runs = commands or (
        not is_database and len(operands) >= needed and operands[0] not in TERMINAL_INPUT
    )
    return "" if runs or not typed else f"{program} would run what is typed into it"


def git_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    name = next((word for word in words if not word.startswith("-")), "")
    options = {*words}
    if name in PATCHING_GIT and options & (
        INTERACTIVE_GIT
        - ({"-p", "-e"} if name in {"rebase", "clean"} else {"-e"} if name == "commit" else set())
    ):
        return f"git {name} asks questions; name the files instead"
    writes_message = {
        "-m",
        "-F",
        "-C",
        "--no-edit",
        "--message",
        "--file",
        "--fixup",
        "--reuse-message",
        "--squash",
    }
    given = {word.split("=")[0] for word in words} | {
        word[:2] for word in words if re.match(r"-[mFC]", word)
    }
    short = {
        f"-{letter}" for word in words if re.fullmatch(r"-[a-zA-Z]+", word) for letter in word[1:]
    }
    if name == "commit" and not (given | short) & writes_message:
        return "git commit opens an editor; use -m"
    if name in {"difftool", "mergetool", "gui", "citool", "instaweb"}:
        return f"git {name} opens a program to type into"
    return ""


def ssh_prompt(program: str, words: Sequence[str], *, typed: bool) -> str:
    rest, operands = list(words), 0
    while rest:
        word = rest.pop(0)
        if operands == 0 and word.startswith("-"):
            if len(word) == 2 and word[1] in SSH_VALUED and rest:
                rest.pop(0)
            continue
        operands += 1
    forced = any(re.fullmatch(r"-t+", word) for word in words)
    if program == "mosh" or forced or (operands < 2 and typed):
        return f"{program} opens a shell on another machine"
    return ""


class Prompt(Protocol):
    """Why a program with these words would wait for typed input; empty if it would not."""

    def __call__(self, program: str, words: Sequence[str], /, *, typed: bool) -> str: ...


# The first row with the program applies.
PROMPTS: tuple[tuple[frozenset[str], Prompt], ...] = (
    (EDITORS, editor_prompt),
    (PAGERS, pager_prompt),
    (SCREENS, screen_prompt),
    (SHELLS, shell_prompt),
    (CONSOLES, console_prompt),
    (INPUT_RUNNERS, input_prompt),
    (frozenset({"git"}), git_prompt),
    (frozenset({"ssh", "mosh"}), ssh_prompt),
    (CONTAINERS, container_prompt),
    (frozenset({"su", "sudo", "doas"}), user_prompt),
    (frozenset({"npm", "yarn", "pnpm"}), init_prompt),
)
