"""Types of commits and of decisions: two vocabularies, each read and one written (OPEN-62, 63)."""

# GIT-TYPE-1 to 4: all there are, for who checks; a reader takes any word.
COMMIT_TYPES = {
    "feat": "a new capability",
    "fix": "a bug fix",
    "refactor": "restructuring without functional change",
    "explore": "an experiment, or low confidence",
    "revert": "undoing earlier changes",
    "docs": "documentation only",
    "test": "tests",
    "chore": "dependencies, configuration, maintenance",
    "style": "formatting and linting",
}
# What others call them (OPEN-67): read, but not ours to write.
RELATED = {
    "feature": "feat",
    "bugfix": "fix",
    "hotfix": "fix",
    "perf": "refactor, with the trailer PVP-Type: optimization",
    "doc": "docs",
    "tests": "test",
    "build": "chore",
    "ci": "chore",
    "deps": "chore",
    "format": "style",
}

# PVP 18.2, the words of a DecisionCommit.
RECORDED = (
    *("implementation", "refactor", "bugfix", "exploration", "revert", "documentation"),
    *("test", "configuration", "dependency", "optimization"),
)
MERGE = "merge-resolution"
# GIT-DECTYPE-1, the words of the trailer.
WRITTEN = (
    *("implementation", "architecture", "exploration", "correction", "reversion"),
    MERGE,
)
DECISION_TYPES = tuple(dict.fromkeys((*RECORDED, *WRITTEN)))

_TO_RECORD = {
    "correction": "bugfix",
    "reversion": "revert",
    "architecture": "implementation",
    MERGE: "implementation",
}
_TO_TRAILER = {"bugfix": "correction", "revert": "reversion"}

DEFAULTS = {
    "feat": "implementation",
    "fix": "bugfix",
    "refactor": "refactor",
    "style": "refactor",
    "explore": "exploration",
    "revert": "revert",
    "docs": "documentation",
    "test": "test",
    "chore": "configuration",
    "perf": "optimization",  # not one of the nine, but a word that others use
}
_DEPENDENCIES = frozenset({"dep", "deps", "deps-dev", "dependency", "dependencies"})


def recorded(word: str) -> str:
    """The word of a DecisionCommit."""
    return _TO_RECORD.get(word, word)


def written(word: str) -> tuple[str, str | None]:
    """The word of the trailer, and the exact one where the trailer's says less."""
    if word in _TO_TRAILER or word in WRITTEN:
        return _TO_TRAILER.get(word, word), None
    return "implementation", word


def told(decision_type: str | None, pvp_type: str | None) -> str | None:
    """What the two trailers say together: the exact word, if it does not contradict."""
    if decision_type is None or pvp_type is None:
        return decision_type or pvp_type
    return pvp_type if written(pvp_type) == (decision_type, pvp_type) else decision_type


def usual(commit_type: str, scope: str | None = None) -> str | None:
    """What a commit of this type decides, when nobody says (OPEN-63)."""
    if commit_type == "chore" and (scope or "").lower() in _DEPENDENCIES:
        return "dependency"
    return DEFAULTS.get(commit_type)
