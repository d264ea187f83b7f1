"""What a shell script does: the findings of every command that a shell would run for it."""

from collections.abc import Iterator

from accord.core.policy.call_findings import Finding, read, refused
from accord.core.policy.forbidden_commands import decides, hides_decision, opens_prompt
from accord.core.policy.git_commands import git_meaning, git_read_paths, take_apart
from accord.core.policy.path_rules import PathRules, possible_folders
from accord.core.policy.policy_toml import Policy
from accord.core.policy.program_effects import (
    HARMLESS_VARIABLES,
    RECURSIVE,
    SHELLS,
    WRAPPERS,
    meaning_of,
)
from accord.core.policy.reading_programs import read_paths
from accord.core.policy.shell_syntax import Redirect, Script, ShellParser, SimpleCommand, Word
from accord.core.room.room_settings import Category
from accord.core.room.state import CallSubject, Risk

MAX_DEPTH = 5
MAX_FOLDERS = 16
MAX_FOLDER_CHANGES = 4
READ = Category.FILE_READ
SHELL, HIGH, MEDIUM = Category.SHELL_EXECUTE, Risk.HIGH, Risk.MEDIUM
# Options of wrappers that take a value as the next word.
VALUED_OPTIONS = {
    "nice": "n",
    "timeout": "ks",
    "env": "uSC",
    "xargs": "aEIdLlnPs",
    "stdbuf": "ioe",
    "sudo": "ugpCDhRrTt",
    "ionice": "cnp",
    "time": "of",
    "watch": "n",
    "doas": "uC",
    "strace": "eopsuE",
    "taskset": "c",
}
OPERANDS_BEFORE = {"timeout": 1, "chrt": 1, "taskset": 1, "setarch": 1}
NO_READ_THROUGH = frozenset(
    {"xargs", "sudo", "doas", "watch", "strace", "env", "nohup", "setsid", "builtin"}
)
ACCORD_RUNNERS = frozenset({"uvx", "pipx", "uv", "npx", "poetry", "hatch", "pdm", "rye"})


class ShellRules:
    """The rules for shell text of one call."""

    def __init__(
        self,
        policy: Policy,
        places: PathRules,
        parse: ShellParser,
        cwd: str,
        subjects: list[CallSubject | None],
    ) -> None:
        self._subjects = subjects
        self._policy = policy
        self._places = places
        self._parse = parse
        self._cwd = cwd
        self._folders: tuple[str, ...] = (cwd,)
        self._plain = False
        self._lost = False  # it changes its working directory more often than is followed

    def findings(self, text: str, depth: int = 0) -> Iterator[Finding]:
        """Everything that bash would do for this text."""
        script = self._parse(text)
        if depth == 0:
            self._plain = script.plain
            if not script.plain:
                self._subjects.append(None)
        self._folders = self._folders_of(script)
        if script.problem:
            yield Finding(SHELL, HIGH, f"it cannot be read as a whole: {script.problem}")
            if reason := hides_decision(text):
                yield refused(reason)
        if self._lost or len(self._folders) > MAX_FOLDERS:
            yield Finding(SHELL, HIGH, "it changes its working directory too often to follow")
            self._folders = self._folders[:MAX_FOLDERS]
        if not script.commands and not script.problem:
            if text.strip():
                yield Finding(SHELL, HIGH, "it contains no command that can be read")
            else:
                yield read("it is empty")
        for command in script.commands:
            yield from self._command(command, depth)

    def words_findings(self, words: tuple[str, ...]) -> Iterator[Finding]:
        """What a program does that is run without a shell."""
        self._plain = True
        command = SimpleCommand(tuple(Word(word, raw=word) for word in words))
        yield from self._command(command, 0)

    def _folders_of(self, script: Script) -> tuple[str, ...]:
        targets = []
        for command in script.commands:
            texts = [word.text for word in command.words]
            if texts[:1] == ["cd"] and len(texts) == 2:
                word = command.words[1]
                targets.append(self._places.absolute(word.text, "") if word.home else word.text)
        folders = list(self._folders)
        self._lost = self._lost or len(targets) > MAX_FOLDER_CHANGES
        for folder in self._folders:
            folders += possible_folders(folder, tuple(targets[:MAX_FOLDER_CHANGES]))
        return tuple(dict.fromkeys(folders))

    # One command

    def _command(self, command: SimpleCommand, depth: int) -> Iterator[Finding]:
        for redirect in command.redirects:
            yield from self._redirect(redirect)
        for name, value in command.assignments:
            yield from self._assignment(name, value, prefix=bool(command.words))
        if not command.words:
            return
        program = command.words[0]
        if not program.literal or program.glob or program.home:
            yield Finding(
                SHELL, HIGH, f"which program {program.raw} is cannot be known before it runs"
            )
            yield from self._hidden(command)
            return
        yield from self._program(command, depth)

    def _hidden(self, command: SimpleCommand) -> Iterator[Finding]:
        if reason := hides_decision(" ".join(word.raw for word in command.words)):
            yield refused(reason)

    def _program(self, command: SimpleCommand, depth: int) -> Iterator[Finding]:
        name = command.words[0].text
        program = name.rsplit("/", 1)[-1]
        words = command.words[1:]
        texts = [word.text for word in words]
        if reason := _decision(program, texts) or opens_prompt(program, texts, command):
            yield refused(reason)
        yield from self._own_directories(program, words)
        if not command.literal:
            yield from self._hidden(command)
        if program == "cd" and _is_plain_cd(words):
            yield from (self._places.reading(path) for path in self._absolute(words[0]))
            return
        rule = self._by_policy(command)
        found = self._read(name, command) if self._plain and command.literal else None
        if depth == 0 and (found is None or (rule is not None and rule.category is not READ)):
            known = command.literal and not any(word.glob for word in command.words)
            run = tuple(word.text for word in command.words)
            self._subjects.append(CallSubject(run=run) if known else None)
        if rule is not None:
            yield rule
            return
        if found is not None:
            yield from found
            return
        yield from self._meaning(program, name, command, depth)

    def _by_policy(self, command: SimpleCommand) -> Finding | None:
        """What the first rule of the policy says that matches; none matches unknown words."""
        if not command.literal or any(word.glob for word in command.words if word.raw[:1] in "*?["):
            return None
        texts = [word.text for word in command.words]
        for rule in self._policy.command:
            pattern = rule.matching(texts)
            if pattern is None:
                continue
            if rule.category is Category.FILE_READ and not self._plain:
                return None
            return Finding(
                rule.category, rule.risk, f"{pattern}: {rule.reason or 'a rule of the policy'}"
            )
        return None

    def _read(self, name: str, command: SimpleCommand) -> list[Finding] | None:
        """The reads of a command that only reads; None for any other."""
        if command.assignments:
            return None
        words = command.words[1:]
        if name in WRAPPERS - NO_READ_THROUGH:
            if name == "command" and [word.text for word in words[:1]] in (["-v"], ["-V"]):
                return [read("looks for programs")]
            inner = _wrapped(name, words)
            return None if inner is None else self._read_inner(inner, command)
        git = take_apart(words) if name == "git" else None
        if git is not None and [word.text for word in words] != ["--version"]:
            named = git_read_paths(git)
            folders = [path for each in git.folders for path in self._absolute(each)]
            shown = f"git {git.subcommand}"
            if named is None:
                return None
            extra = [*folders, *self._folders]
        else:
            found = read_paths(name, words)
            if found is None:
                return None
            named, shown, extra = found.paths, name, list(self._folders) if not found.paths else []
        reads = [self._places.reading(path) for path in extra]
        for word in named:
            if word.text == "-":
                continue
            reads += [self._places.reading(path) for path in self._absolute(word)]
        return [read(f"{shown} only reads"), *reads]

    def _read_inner(self, inner: tuple[Word, ...], command: SimpleCommand) -> list[Finding] | None:
        return self._read(inner[0].text, SimpleCommand(inner, (), command.redirects, command.piped))

    def _absolute(self, word: Word) -> list[str]:
        text = word.text
        if word.home:
            return [self._places.absolute(text, "/")]
        # A quoted `~` is a name like any other.
        text = f"./{text}" if text.startswith("~") else text
        return [self._places.below(text, folder) for folder in self._folders]

    def _own_directories(self, program: str, words: tuple[Word, ...]) -> Iterator[Finding]:
        """Refuse every word that leads into Accord's directories, and searches from above them."""
        for word in words:
            text = word.text
            if text.startswith("-") and "=" in text:
                text = text.split("=", 1)[1]
            candidate = Word(
                text, word.literal, word.glob, word.home or text.startswith("~/"), word.raw
            )
            for variable in ("$HOME", "${HOME}"):
                stripped = text.strip('"')
                if stripped.startswith(variable):
                    candidate = Word(
                        f"~{stripped.removeprefix(variable)}",
                        glob=word.glob,
                        home=True,
                        raw=word.raw,
                    )
            for path in self._absolute(candidate):
                if (refusal := self._places.protection(path)) is not None:
                    yield refusal
                elif (
                    program in RECURSIVE
                    and not text.startswith("-")
                    and self._places.covers_protected(path)
                    and ("/" in text or text in {"~", ".", ".."} or candidate.home)
                ):
                    yield refused(
                        f"{program} {text} would reach directories that belong to Accord itself"
                    )

    # What does more than read

    def _meaning(
        self, program: str, name: str, command: SimpleCommand, depth: int
    ) -> Iterator[Finding]:
        words = command.words[1:]
        texts = [word.text for word in words]
        if not command.literal:
            yield Finding(SHELL, MEDIUM, f"some words of {program} are only known when it runs")
        if program == "git":
            meaning = git_meaning(take_apart(words))
            subcommand = take_apart(words).subcommand
            yield Finding(meaning.category, meaning.risk, f"git {subcommand} {meaning.why}".strip())
        elif name != program and not name.startswith("./"):
            inside = any(self._places.is_inside(path) for path in self._absolute(command.words[0]))
            finding = meaning_of(program, texts)
            risk = finding.risk if inside or finding.risk is Risk.CRITICAL else HIGH
            yield Finding(finding.category, risk, f"{name} is a program by its path; {finding.why}")
        else:
            yield meaning_of(program, texts)
        yield from self._written(program, words)
        yield from self._inner_scripts(program, command, depth)

    def _written(self, program: str, words: tuple[Word, ...]) -> Iterator[Finding]:
        """The files that a command which writes names, so that rules for paths apply."""
        if meaning_of(program, []).category not in (Category.FILE_WRITE, Category.FILE_DELETE):
            return
        verb = "deletes" if meaning_of(program, []).category is Category.FILE_DELETE else "writes"
        for word in words:
            if word.text.startswith("-") or not word.literal:
                continue
            for path in self._absolute(word):
                found = self._places.writing(path, verb)
                if found.refusal or found.risk in (Risk.HIGH, Risk.CRITICAL):
                    yield found

    def _inner_scripts(self, program: str, command: SimpleCommand, depth: int) -> Iterator[Finding]:
        """The commands that a command runs for its part."""
        if depth >= MAX_DEPTH:
            yield Finding(SHELL, HIGH, "it is nested too deeply to follow")
            return
        words = command.words[1:]
        if program in WRAPPERS and (inner := _wrapped(program, words)):
            yield from self._command(
                SimpleCommand(inner, (), (), command.piped or command.has_input), depth + 1
            )
        elif program in {"find", "fd"}:
            yield from self._found_commands(words, depth)
        elif program == "eval" or program in SHELLS:
            yield from self._code(program, words, depth)
        elif program in ACCORD_RUNNERS or (
            program.startswith("python") and [w.text for w in words[:1]] == ["-m"]
        ):
            names = [word.text.split("@")[0].split("==")[0] for word in words]
            if "accord" in names:
                rest = [word.text for word in words[names.index("accord") + 1 :]]
                if reason := decides("accord", rest):
                    yield refused(reason)

    def _found_commands(self, words: tuple[Word, ...], depth: int) -> Iterator[Finding]:
        texts = [word.text for word in words]
        if "-delete" in texts:
            yield Finding(Category.FILE_DELETE, HIGH, "find -delete deletes files")
        for option in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec"):
            for at in [n for n, text in enumerate(texts) if text == option]:
                inner = []
                for word in words[at + 1 :]:
                    if word.text in {";", "+"}:
                        break
                    inner.append(word)
                yield from self._command(SimpleCommand(tuple(inner)), depth + 1)
                yield Finding(SHELL, MEDIUM, f"find {option} runs a program for what it finds")

    def _code(self, program: str, words: tuple[Word, ...], depth: int) -> Iterator[Finding]:
        if program == "eval":
            code = words
        else:
            at = next(
                (
                    n
                    for n, word in enumerate(words)
                    if word.text.startswith("-")
                    and not word.text.startswith("--")
                    and "c" in word.text
                ),
                None,
            )
            code = () if at is None else words[at + 1 : at + 2]
        if not code:
            return
        if not all(word.literal for word in code):
            yield Finding(SHELL, HIGH, f"what {program} runs is only known when it runs")
            return
        plain = self._plain
        yield from self.findings(" ".join(word.text for word in code), depth + 1)
        self._plain = plain
        yield Finding(SHELL, MEDIUM, f"{program} runs text as a script")

    # Redirections and variables

    def _redirect(self, redirect: Redirect) -> Iterator[Finding]:
        target = redirect.target
        if redirect.is_input_text:
            if not target.literal:
                yield Finding(
                    SHELL, MEDIUM, "a here-document contains what is only known when it runs"
                )
            return
        if redirect.operator in {">&", "<&"} and (
            target.text.rstrip("-").isdigit() or target.text == "-"
        ):
            return
        if not target.literal or target.glob:
            yield Finding(
                Category.FILE_WRITE,
                HIGH,
                f"where {redirect.operator} {target.raw} leads is only known when it runs",
            )
            return
        for path in self._absolute(target):
            if redirect.operator == "<":
                yield self._places.reading(path)
                continue
            written = self._places.writing(path)
            if written.category is not READ:
                self._subjects.append(self._written_subject(path))
            yield written

    def _written_subject(self, path: str) -> CallSubject | None:
        inside = self._places.is_inside(path)
        return CallSubject(write=self._places.relative(path)) if inside else None

    def _assignment(self, name: str, value: Word, *, prefix: bool) -> Iterator[Finding]:
        allowed = HARMLESS_VARIABLES | {*self._policy.environment}
        if not value.literal:
            yield Finding(SHELL, MEDIUM, f"the value of {name} is only known when it runs")
        elif prefix and name not in allowed:
            yield Finding(SHELL, HIGH, f"{name}=… may change which programs run")
        elif not prefix:
            yield Finding(SHELL, MEDIUM, f"sets {name}")


def _is_plain_cd(words: tuple[Word, ...]) -> bool:
    """Whether `cd` names its folder; `-` and options do not."""
    return len(words) == 1 and words[0].literal and not words[0].glob and words[0].text[:1] != "-"


def _decision(program: str, texts: list[str]) -> str:
    return decides(program, texts)


def _wrapped(program: str, words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """The command that a wrapper runs; None if it is not clear where that begins."""
    rest = list(words)
    valued = VALUED_OPTIONS.get(program, "")
    while rest:
        text = rest[0].text
        is_assignment = program in {"env", "sudo"} and "=" in text and not text.startswith("-")
        if text == "--":
            rest.pop(0)
            break
        if is_assignment:
            rest.pop(0)
        elif text.startswith("-") and len(text) > 1:
            rest.pop(0)
            takes_next = len(text) == 2 and text[1] in valued
            if takes_next and rest:
                rest.pop(0)
        else:
            break
    skipped = OPERANDS_BEFORE.get(program, 0)
    return tuple(rest[skipped:]) if len(rest) > skipped else None
