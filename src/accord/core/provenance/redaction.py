"""One filter in front of every sink: what looks like a secret is not passed on (UNI-29)."""

import re
from collections.abc import Callable, Iterable
from typing import Any

REDACTED = "[redacted]"
PASSES = 4

# Each pattern ends where the secret does, and none can backtrack over what another part matched.
_LOOKS_SECRET = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})",
    r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\b(?:npm|pypi|hf|dop_v1|shpat|whsec|figd|lin_api)[_-][A-Za-z0-9_-]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?",
)
# The named part is kept, so that a reader sees what it was that is missing.
_TOLD_SECRET = (
    r"(?P<scheme>\b(?i:bearer|basic)\s{1,4})(?!\[redacted\])[A-Za-z0-9._~+/=-]{8,}",
    r"(?P<url>://[^\s:/@]{0,200}:)(?!\[redacted\])[^\s/@]{1,400}(?=@)",
    (
        r"(?P<name>(?i:(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key"
        r"|private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|credentials?)"
        r"[a-z0-9_-]{0,40})[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
        r"(?!\[redacted\])[^\s\"',;&]{4,}"
    ),
)
# Every secret above has one of these in it. Looking for them first is twenty times quicker, and
# most of what is said has none.
_HINTS = (
    *("private key", "akia", "asia", "abia", "acca", "gho_", "ghp_", "ghr_", "ghs_", "ghu_"),
    *("github_pat_", "glpat", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xox", "aiza", "npm"),
    *("pypi", "hf_", "hf-", "dop_v1", "shpat", "whsec", "figd", "lin_api", "eyj", "bearer"),
    *("basic", "://", "passw", "passphrase", "secret", "key", "token", "credential"),
)
_KEPT = ("scheme", "url", "name")
_SECRET_NAME = re.compile(
    r"(?i)passw(or)?d|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|(auth|access|refresh|bearer)[_-]?token|^token$|^credentials?$|^authorization$|^cookie$"
)

Redact = Callable[[str], str]


def redactor(known: Iterable[str] = ()) -> Redact:
    """The filter; values that are `known` to be secret go wherever they stand."""
    values = sorted({value for value in known if value}, key=lambda value: (-len(value), value))
    parts = (re.escape(REDACTED), *map(re.escape, values), *_LOOKS_SECRET, *_TOLD_SECRET)
    pattern = re.compile("|".join(parts))

    def clean(text: str) -> str:
        lowered = text.lower()
        hinted = any(hint in lowered for hint in _HINTS)
        if not (hinted or any(value in text for value in values)):
            return text
        # What is left of one secret may look like another one.
        for _ in range(PASSES):
            text, before = pattern.sub(_without, text), text
            if text == before:
                break
        return text

    return clean


def _without(found: re.Match[str]) -> str:
    kept = next((part for name in _KEPT if (part := found[name])), "")
    return f"{kept}{REDACTED}"


redact = redactor()


def scrub(value: Any, clean: Redact = redact) -> Any:
    """The same JSON with every string in it cleaned, and what is named as secret left out."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): _named(str(key), each, clean) for key, each in value.items()}
        case list() | tuple():
            return [scrub(each, clean) for each in value]
        case _:
            return value


def _named(name: str, value: Any, clean: Redact) -> Any:
    told = isinstance(value, str) and value and _SECRET_NAME.search(name)
    return REDACTED if told else scrub(value, clean)
