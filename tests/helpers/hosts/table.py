"""All hosts, and which of them a run of the tests uses."""

import os

from tests.helpers.hosts.claude import CLAUDE
from tests.helpers.hosts.codex import CODEX
from tests.helpers.hosts.gemini import GEMINI
from tests.helpers.hosts.opencode import OPENCODE

HOSTS = {host.name: host for host in (CLAUDE, CODEX, GEMINI, OPENCODE)}
DEFAULT = ("claude", "codex", "gemini")
# Accord has no gate for these, and says so.
UNGATED = frozenset({"opencode"})
VARIABLE = "TEST_HOSTS"


def chosen_hosts(names: str | None = None) -> tuple[str, ...]:
    """The names of a list such as `claude,codex`; without one, those of the environment.

    `none` chooses none; the long tests use all hosts, if no others are named.
    """
    text = os.environ.get(VARIABLE, "") if names is None else names
    if text == "none":
        return ()
    unnamed = tuple(HOSTS) if os.environ.get("ACCORD_LONG") else DEFAULT
    chosen = tuple(text.replace(",", " ").split()) or unnamed
    if unknown := sorted(set(chosen) - set(HOSTS)):
        raise ValueError(f"no host is called {', '.join(unknown)}: there are {', '.join(HOSTS)}")
    return tuple(name for name in HOSTS if name in chosen)


def gated_hosts() -> tuple[str, ...]:
    """The chosen hosts that run our hook."""
    return tuple(name for name in chosen_hosts() if name not in UNGATED)
