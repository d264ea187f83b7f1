"""One filter in front of every sink."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.redaction import (
    PATTERNS,
    REDACTED,
    SecretPattern,
    redact,
    redact_json,
    redactor,
)
from tests.spec import proves

# Put together here, so that no scanner takes this file for a leak.
SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "a1" * 18,
    "github_pat_" + "b2" * 20,
    "glpat-" + "c3" * 10,
    "sk-" + "proj-" + "d4" * 20,
    "xoxb-" + "123456789012-abcdef",
    "AIza" + "e5" * 18,
    "npm_" + "f6" * 18,
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE " + "KEY-----\nnever ends",
]


@proves("UNI-29")
@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:8])
def test_what_looks_like_a_secret_is_not_passed_on(secret: str) -> None:
    assert redact(f"use {secret}") == f"use {REDACTED}"


@proves("UNI-29")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
        ("postgres://bob:hunter2@db/x", "postgres://bob:[redacted]@db/x"),
        ("DB_PASSWORD=hunter2 next", "DB_PASSWORD=[redacted] next"),
        ('{"api_key": "abcd1234"}', '{"api_key": "[redacted]"}'),
        ("client_secret: 'abcd'", "client_secret: '[redacted]'"),
        ("https://a.example#code=" + "Ab1_-" * 5, "https://a.example#code=[redacted]"),
        ("accord login URL --code " + "Ab1_-" * 5, "accord login URL --code [redacted]"),
        ("bearer_token=abcd1234", "bearer_token=[redacted]"),
    ],
)
def test_what_is_told_as_a_secret_keeps_its_name_alone(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "feat(auth): implement JWT validation",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "dec_01HX7K9P4QZCVD3N8MYW6R5T2B",
        "the password is asked for twice",
        "https://example.org:8080/path",
        "keep it secret",
    ],
)
def test_redaction_leaves_plain_words(text: str) -> None:
    assert redact(text) == text


@proves("UNI-29")
def test_a_known_value_goes_wherever_it_stands() -> None:
    clean = redactor(["open sesame", "sesame", ""])

    assert clean("say open sesame, or sesame") == f"say {REDACTED}, or {REDACTED}"


@proves("UNI-29")
def test_json_is_cleaned_in_every_place() -> None:
    secret = SECRETS[0]

    found = redact_json(
        {"a": [secret, {"password": "x", "token": ""}], secret: 1, "n": None, "t": (2,)}
    )

    assert found == {
        "a": [REDACTED, {"password": REDACTED, "token": ""}],
        REDACTED: 1,
        "n": None,
        "t": [2],
    }


TEXTS = st.lists(st.sampled_from([*SECRETS, "password=", "a:b@c", "://", " ", "\n", "x"])).map(
    "".join
)


@given(TEXTS, st.lists(st.text("abx:/", min_size=3, max_size=4), max_size=2))
def test_cleaning_twice_is_cleaning_once(text: str, known: list[str]) -> None:
    clean = redactor(known)

    once = clean(text)

    assert clean(once) == once
    assert not any(value in part for value in known for part in once.split(REDACTED))


def test_what_never_settles_ends_all_the_same() -> None:
    assert REDACTED in redactor(["d", "e["])("bed[")


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.hints[0])
@given(data=st.data())
def test_every_match_contains_a_hint(pattern: SecretPattern, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(f"(?:{pattern.before}){pattern.secret}"))

    assert any(hint in text.lower() for hint in pattern.hints)
