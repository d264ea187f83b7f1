"""Which linters of commit messages a repository configures, and how they accept `explore`.

`explore` is the one commit type of ours that Conventional Commits does not know.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

COMMIT_TYPE = "explore"
MAX_CONFIG_BYTES = 1 << 20


TYPES = ("build", "chore", "ci", "docs", COMMIT_TYPE, "feat", "fix", "perf", "refactor", "revert")
ALL_TYPES = (*TYPES, "style", "test")
# What commitizen accepts unchecked without this setting, and ours.
PREFIXES = ("Merge", "Revert", "Pull request", "fixup!", "squash!", "amend!")
ALL_PREFIXES = (*PREFIXES, f"{COMMIT_TYPE}:", f"{COMMIT_TYPE}(")
SETTING_FORMATS = {".json": '"{name}": {value}', ".yaml": "{name}: {value}"}
TOML_FORMAT = "{name} = {value}"


def _commitlint_setting(file: str) -> str:
    """One spelling for all formats: JSON is JavaScript and YAML, too."""
    del file
    return f'"rules": {{"type-enum": [2, "always", {json.dumps(ALL_TYPES)}]}}'


def _gitlint_setting(file: str) -> str:
    del file
    return f"[contrib-title-conventional-commits]\ntypes={','.join(ALL_TYPES)}"


def _commitizen_setting(file: str) -> str:
    layout = SETTING_FORMATS.get(Path(file).suffix, TOML_FORMAT)
    return layout.format(name="allowed_prefixes", value=json.dumps(ALL_PREFIXES))


class MessageLinter(NamedTuple):
    """A program, the files that may configure it, and the setting that makes it accept the type.

    Each file stands beside a text that it contains if it configures the program.
    """

    name: str
    files: tuple[tuple[str, str], ...]
    setting_in: Callable[[str], str]


class ConfiguredLinter(NamedTuple):
    """A linter with the file that configures it."""

    linter: MessageLinter
    file: str

    @property
    def setting(self) -> str:
        """What to add to the file."""
        return self.linter.setting_in(self.file)


LINTERS = (
    MessageLinter(
        "commitlint",
        (
            *((f"commitlint.config.{ending}", "") for ending in ("js", "cjs", "mjs", "ts", "cts")),
            (".commitlintrc", ""),
            *((f".commitlintrc.{ending}", "") for ending in ("json", "yaml", "yml", "js", "cjs")),
            *((f".commitlintrc.{ending}", "") for ending in ("mjs", "ts", "cts")),
            ("package.json", '"commitlint":'),
            ("package.yaml", "commitlint:"),
        ),
        _commitlint_setting,
    ),
    MessageLinter(
        "gitlint",
        ((".gitlint", "contrib-title-conventional-commits"), (".gitlint", "CT1")),
        _gitlint_setting,
    ),
    MessageLinter(
        "commitizen",
        (
            ("pyproject.toml", "[tool.commitizen]"),
            *((name, "") for name in (".cz.toml", "cz.toml", ".cz.json", "cz.json")),
            *((name, "") for name in (".cz.yaml", "cz.yaml")),
        ),
        _commitizen_setting,
    ),
)


def linters_without_explore(root: Path) -> Iterator[ConfiguredLinter]:
    """Linters that are configured in this directory, where nothing mentions the type yet."""
    for linter in LINTERS:
        for name, marker in linter.files:
            content = _read(root / name)
            if content is not None and marker in content:
                if COMMIT_TYPE not in content:
                    yield ConfiguredLinter(linter, name)
                break


def _read(path: Path) -> str | None:
    """The text of a regular file that is not too large; None if there is none."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_CONFIG_BYTES:
            return None
        return path.read_text("utf-8", "replace")
    except OSError:
        return None
