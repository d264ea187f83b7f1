"""Redaction of secrets in everything that leaves the log: notes, messages, exports (UNI-29).

`PATTERNS` is the one table of what a secret looks like, and `redactor` the one filter. It is in the
kernel, so that every context and every sink can use it.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

REDACTED = "[redacted]"
MAX_PASSES = 4


class SecretPattern(NamedTuple):
    """What a secret looks like.

    Every match contains one of the `hints` in lower case. Looking for these first is twenty times
    faster than the patterns, and most texts contain none. Text matched by `before` is kept, so that
    a reader sees what kind of value was removed.
    """

    secret: str
    hints: tuple[str, ...]
    before: str = ""


# Names of values that are secret, in texts and as keys of JSON objects.
SENSITIVE_NAMES = (
    r"passw(?:or)?d|passphrase|secret|(?:api|access|private)[_-]?key"
    r"|(?:auth|access|refresh|bearer)[_-]?token|credentials?"
)
# Keys that are too common in texts to be taken for the name of a secret there.
SENSITIVE_KEYS = r"^(?:token|authorization|cookie)$"

# Each pattern ends where the secret ends; none can backtrack over what another one matched.
PATTERNS = (
    SecretPattern(
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
        ("private key",),
    ),
    SecretPattern(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b", ("akia", "asia", "abia", "acca")),
    SecretPattern(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
        ("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat"),
    ),
    SecretPattern(
        r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}",
        ("sk-", "sk_", "pk-", "pk_", "rk-", "rk_"),
    ),
    SecretPattern(r"\bxox[a-z]-[A-Za-z0-9-]{10,}", ("xox",)),
    SecretPattern(r"\bAIza[A-Za-z0-9_-]{30,}", ("aiza",)),
    SecretPattern(
        r"\b(?:npm|pypi|hf|dop_v1|shpat|whsec|figd|lin_api)[_-][A-Za-z0-9_-]{16,}",
        ("npm", "pypi", "hf_", "hf-", "dop_v1", "shpat", "whsec", "figd", "lin_api"),
    ),
    # A token, such as those of this server.
    SecretPattern(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?", ("eyj",)),
    # The one-time code of a link for signing in.
    SecretPattern(r"[A-Za-z0-9_-]{16,}", ("#code=", "--code"), before=r"#code=|--code[ =]"),
    SecretPattern(
        r"[A-Za-z0-9._~+/=-]{8,}", ("bearer", "basic"), before=r"\b(?i:bearer|basic)\s{1,4}"
    ),
    SecretPattern(r"[^\s/@]{1,400}(?=@)", ("://",), before=r"://[^\s:/@]{0,200}:"),
    SecretPattern(
        r"[^\s\"',;&]{4,}",
        ("passw", "passphrase", "secret", "key", "token", "credential"),
        before=rf"(?i:(?:{SENSITIVE_NAMES})[a-z0-9_-]{{0,40}})[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?",
    ),
)

Redactor = Callable[[str], str]

_HINTS = tuple(hint for pattern in PATTERNS for hint in pattern.hints)
_SENSITIVE_KEY = re.compile(rf"(?i){SENSITIVE_NAMES}|{SENSITIVE_KEYS}")


def redactor(known: Iterable[str] = ()) -> Redactor:
    """A filter for texts that also removes all occurrences of the `known` secret values."""
    values = sorted({value for value in known if value}, key=lambda value: (-len(value), value))
    parts = (re.escape(REDACTED), *map(re.escape, values), *map(_alternative, PATTERNS))
    pattern = re.compile("|".join(parts))

    def clean(text: str) -> str:
        lowered = text.lower()
        hinted = any(hint in lowered for hint in _HINTS)
        if not (hinted or any(value in text for value in values)):
            return text
        # The remainder of one secret may look like another one.
        for _ in range(MAX_PASSES):
            text, before = pattern.sub(_replacement, text), text
            if text == before:
                break
        return text

    return clean


def _alternative(pattern: SecretPattern) -> str:
    """The pattern as part of the whole; what it keeps is a group."""
    if not pattern.before:
        return pattern.secret
    return rf"({pattern.before})(?!{re.escape(REDACTED)}){pattern.secret}"


def _replacement(match: re.Match[str]) -> str:
    kept = match[match.lastindex] if match.lastindex else ""
    return f"{kept}{REDACTED}"


redact = redactor()


def redact_json(value: Any, clean: Redactor = redact) -> Any:
    """The JSON value with every string cleaned, and values under secret-looking keys removed."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {
                clean(str(key)): _redact_entry(str(key), entry, clean)
                for key, entry in value.items()
            }
        case list() | tuple():
            return [redact_json(item, clean) for item in value]
        case _:
            return value


def _redact_entry(name: str, value: Any, clean: Redactor) -> Any:
    is_secret = isinstance(value, str) and value and _SENSITIVE_KEY.search(name)
    return REDACTED if is_secret else redact_json(value, clean)
