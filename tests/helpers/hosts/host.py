"""What the tests know about a host: how it is installed, configured, started and read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

# The name under which hosts know the MCP server, and the variable that holds its token.
MCP_NAME = "accord"
TOKEN_VARIABLE = "ACCORD_TOKEN"
# A server that starts on a busy machine gets more time than hosts give it by default.
MCP_TIMEOUT_S = 120
MODEL_KEY = "fake-key-for-the-scripted-model"


@dataclass(frozen=True)
class HttpMcp:
    """An MCP server at a URL; the host reads the token from its environment."""

    url: str
    token: str


@dataclass(frozen=True)
class StdioMcp:
    """An MCP server that the host starts."""

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


McpServer = HttpMcp | StdioMcp


@dataclass(frozen=True)
class Setup:
    """The directories of one host, the model and the MCP server that it is to use.

    `model_name` is what the host calls the model, if not by its default.
    """

    root: Path
    model_url: str
    mcp: McpServer | None = None
    model_name: str = ""

    @property
    def home(self) -> Path:
        """The host's home directory."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """The repository that the host works in."""
        return self.home / "project"

    @property
    def temporary(self) -> Path:
        """The directory for temporary files; Codex refuses a home below it."""
        return self.root / "tmp"


class Answer(NamedTuple):
    """What a host printed at the end of a turn."""

    text: str = ""
    session_id: str = ""


@dataclass(frozen=True)
class Host:
    """One host. `program` takes the directory of the installation, `files` are relative to home."""

    name: str
    title: str
    installed_mb: int
    program: Callable[[Path], tuple[str, ...]]
    files: Callable[[Setup], Mapping[str, str]]
    environment: Callable[[Setup], Mapping[str, str]]
    turn_arguments: Callable[[str, str], Sequence[str]]
    read_answer: Callable[[str], Answer]
    # OpenCode asks the package registry for its plugin package, and nothing switches that off.
    stays_on_loopback: bool = True


def json_lines(output: str) -> list[dict[str, Any]]:
    """The JSON objects of an output that has one in a line."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def to_json(value: Any) -> str:
    """A settings file."""
    return json.dumps(value, indent=2) + "\n"


def bearer_header(reference: str) -> dict[str, str]:
    """The header with the token, by the host's way to name a variable."""
    return {"Authorization": f"Bearer {reference}"}
