"""The hook that hosts run: asks the daemon, and answers in the host's own dialect.

    python -I -S gate_hook.py RECORD HOST EVENT < what the host says

It may not fail open. Everything that goes wrong here before a tool call becomes a refusal with a
reason: no daemon, a daemon that does not answer in time, input that cannot be read, an error of our
own. A host takes only some exit codes and some JSON as a refusal, so `DIALECTS` has a row for each.

It runs before every call of an agent, so it imports little, from the standard library alone, and
nothing of Accord: it works while Accord is being upgraded, and site-packages are not searched.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

TYPE_CHECKING = False  # type checkers treat this name as true; importing `typing` is slow
if TYPE_CHECKING:
    from typing import Any, NoReturn

VERSION = "0.1.0"  # that of Accord; a test compares them
SOCKET_FILE = "daemon.sock"
PRE_TOOL = "pre-tool"
# Hosts give a hook 60 seconds or more. A gate must have answered long before that.
GATE_SECONDS = 25.0
REPORT_SECONDS = 8.0
RETRY_SECONDS = 0.02
MAX_INPUT_BYTES = 8 << 20
MAX_ANSWER_BYTES = 1 << 20
EXIT_REFUSED = 2
NONE, ALLOW, DENY = "none", "allow", "deny"
PREFIX = "Accord refused this call: "
ADVICE = " Nothing ran. Ask the user to run `accord doctor`, then try again."


class HookError(Exception):
    """Why the daemon could not be asked."""


# Dialects: decision and reason to what the host reads; None where silence is the answer.


def claude_answer(decision: str, reason: str) -> dict[str, Any] | None:
    """Claude Code; a call that people granted is not asked about again."""
    if decision == NONE:
        return None
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }


def codex_answer(decision: str, reason: str) -> dict[str, Any] | None:
    """Codex reads the same denial; its own approvals and sandbox stay for what is granted."""
    return claude_answer(decision, reason) if decision == DENY else None


def gemini_answer(decision: str, reason: str) -> dict[str, Any] | None:
    return None if decision == NONE else {"decision": decision, "reason": reason}


def cursor_answer(decision: str, reason: str) -> dict[str, Any] | None:
    """In Cursor's format, as documented; not tried with Cursor itself.

    With `failClosed`, silence is taken as a failure of the hook: everything would be refused.
    """
    if decision == NONE:
        return {"permission": ALLOW}
    return {"permission": decision, "user_message": reason, "agent_message": reason}


DIALECTS = {
    "claude-code": claude_answer,
    "codex": codex_answer,
    "gemini": gemini_answer,
    "cursor": cursor_answer,
}


def main(arguments: list[str]) -> int:
    """The exit code; a failure is a refusal before a tool call, and silent otherwise."""
    event = arguments[2] if len(arguments) == 3 else PRE_TOOL
    is_gate = event == PRE_TOOL
    host = arguments[1] if len(arguments) == 3 else ""
    try:
        signal.signal(signal.SIGALRM, on_deadline)
        seconds = GATE_SECONDS if is_gate else REPORT_SECONDS
        signal.setitimer(signal.ITIMER_REAL, seconds)
        answer = ask(arguments, time.monotonic() + seconds)
        decision, reason = decision_of(answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:  # noqa: BLE001 - no failure of ours may let a call pass
        if not is_gate:
            return 0
        decision, reason = DENY, PREFIX + sentence_of(error) + ADVICE
    return write_answer(host, decision, reason) if is_gate else 0


def decision_of(answer: dict[str, Any]) -> tuple[str, str]:
    """The decision and its reason; raises HookError if there is none."""
    decision = answer.get("decision")
    if decision not in {NONE, ALLOW, DENY}:
        raise HookError(f"the daemon answered {str(decision)[:40]!r}.")
    return decision, str(answer.get("reason", ""))


def on_deadline(_signal: int, _frame: object) -> NoReturn:
    """Raises in whatever the hook waits for."""
    raise HookError("the gate did not answer in time.")


def sentence_of(error: BaseException) -> str:
    """What went wrong, as the model and the user read it."""
    if isinstance(error, HookError):
        return str(error)
    return f"the gate hook failed ({type(error).__name__}: {str(error)[:200]})."


def write_answer(host: str, decision: str, reason: str) -> int:
    """Write the answer in the host's dialect; an unknown host gets the exit code that all know."""
    dialect = DIALECTS.get(host)
    if dialect is None:
        os.write(2, f"{reason or PREFIX + 'unknown host.'}\n".encode(errors="replace"))
        return EXIT_REFUSED
    answer = dialect(decision, reason)
    if answer is not None:
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(1, data) :]
    return 0


def ask(arguments: list[str], deadline: float) -> dict[str, Any]:
    """The daemon's answer; raises HookError or OSError."""
    if len(arguments) != 3:
        raise HookError("the hook is not configured right: run `accord connect` again.")
    record, host, event = arguments
    folder = os.path.dirname(os.path.dirname(os.path.abspath(record)))  # noqa: PTH100, PTH120 - `pathlib` is too slow here
    payload = read_payload()
    if is_elsewhere(record, payload):
        return {"decision": NONE}
    request = {
        "version": VERSION,
        "record": record,
        "host": host,
        "event": event,
        "cwd": working_directory(),
        "home": os.environ.get("HOME", ""),
        "payload": payload,
    }
    line = json.dumps(request).encode() + b"\n"
    os.chdir(folder)  # the path of a socket has a limit that the path of the directory may exceed
    started = 0
    while True:
        try:
            return exchange(line, deadline)
        except (FileNotFoundError, ConnectionError, ReplacedError):
            started = started or start_daemon()
            if has_failed(started) or time.monotonic() > deadline:
                raise HookError("the daemon could not start; daemon.log says why.") from None
            time.sleep(RETRY_SECONDS)


# The directory that a host was started in. An agent's `cd` does not change it, so that no agent
# leaves the gate by leaving the directory.
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")
MAX_LINK_BYTES = 4096


def is_elsewhere(record: str, payload: dict[str, Any]) -> bool:
    """Whether the call is outside the connected repository, where this hook has no opinion.

    It is only if all that is known about the host's directories says so, and the call names no path
    in the repository.
    """
    root = repository_of(record)
    if not root:
        return False  # the daemon says what is wrong with the record
    listed = payload.get("workspace_roots")
    roots = listed if isinstance(listed, list) else []
    named = [os.environ.get(name) for name in PROJECT_VARIABLES]
    known = [working_directory(), payload.get("cwd"), *named, *roots]
    places = [place for place in known if isinstance(place, str) and place.startswith("/")]
    if not places or any(is_inside(root, place) for place in places):
        return False
    start = places[1] if len(places) > 1 else places[0]
    words = paths_in(payload.get("tool_input"), MAX_WORDS)
    return not any(is_inside(root, os.path.join(start, word)) for word in words)  # noqa: PTH118


MAX_WORDS = 1000
# What may stand around a path in a command line.
PUNCTUATION = str.maketrans(dict.fromkeys("\"'`;&|<>(){}=,:\n\t", " "))


def paths_in(value: object, most: int) -> list[str]:
    """What could be paths in the arguments of a call, such as the words of a command."""
    if isinstance(value, str):
        words = [value] if len(value) < MAX_LINK_BYTES else []
        words += [
            word
            for word in value.replace("${HOME}", "$HOME").translate(PUNCTUATION).split()
            if "/" in word or "." in word
        ]
        return [expanded(word) for word in words[:most] if "\0" not in word]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found: list[str] = []
    for each in inner:
        found += paths_in(each, most - len(found))
    return found


def expanded(word: str) -> str:
    """The path with the home directory in place of what shells put it for."""
    for name in ("~/", "$HOME/"):
        if word.startswith(name):
            return os.path.join(os.environ.get("HOME", "/"), word[len(name) :])  # noqa: PTH118
    return word


def repository_of(record: str) -> str:
    """The top directory of the connected repository; empty if the record cannot be read."""
    try:
        with open(record, "rb") as file:  # noqa: PTH123 - `pathlib` is too slow here
            root = json.loads(file.read(MAX_ANSWER_BYTES)).get("root")
    except (OSError, ValueError, AttributeError):
        return ""
    return root if isinstance(root, str) else ""


def is_inside(root: str, place: str) -> bool:
    """Whether a directory is in the repository, or in another work tree of it."""
    root, place = os.path.realpath(root), os.path.realpath(place)
    if is_below(place, root):
        return True
    while not os.path.lexists(os.path.join(place, ".git")):  # noqa: PTH118 - the same
        parent = os.path.dirname(place)  # noqa: PTH120 - the same
        if parent == place:
            return False
        place = parent
    try:
        with open(os.path.join(place, ".git"), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - the same
            key, _, target = file.read(MAX_LINK_BYTES).strip().partition(": ")
    except (OSError, ValueError):  # a directory: a repository of its own
        return False
    git_dir = os.path.realpath(os.path.join(place, target))  # noqa: PTH118 - the same
    return key == "gitdir" and is_below(git_dir, os.path.join(root, ".git"))  # noqa: PTH118


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class ReplacedError(Exception):
    """The daemon is of an older version and ends, so that a new one can start."""


def working_directory() -> str:
    """Where the host runs the hook; empty if that directory is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 - `pathlib` is too slow here
    except OSError:
        return ""


def read_payload() -> dict[str, Any]:
    """What the host says about the call; raises HookError."""
    data = b""
    while chunk := os.read(0, 1 << 16):
        data += chunk
        if len(data) > MAX_INPUT_BYTES:
            raise HookError(f"its arguments are larger than {MAX_INPUT_BYTES >> 20} MiB.")
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        raise HookError("the host sent a call that is not JSON.") from None
    if not isinstance(payload, dict):
        raise HookError("the host sent a call that is not a JSON object.")
    return payload


def exchange(line: bytes, deadline: float) -> dict[str, Any]:
    """One request and its answer; raises OSError if there is no daemon."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        connection.connect(SOCKET_FILE)
        if peer_uid(connection) != os.geteuid():
            raise HookError("another user's process listens in place of the daemon.")
        connection.sendall(line)
        received = b""
        while b"\n" not in received:
            chunk = connection.recv(1 << 16)
            if not chunk:
                raise ConnectionResetError("the daemon ended")
            received += chunk
            if len(received) > MAX_ANSWER_BYTES:
                raise HookError("the daemon's answer is too long.")
    answer = json.loads(received)
    if not isinstance(answer, dict):
        raise HookError("the daemon's answer is not an object.")
    if answer.get("replaced"):
        raise ReplacedError
    if answer.get("error"):
        raise HookError(str(answer["error"])[:2000])
    return answer


def peer_uid(connection: socket.socket) -> int:
    """The user whose process is at the other end."""
    level, option, size = PEER_OPTION
    return int.from_bytes(connection.getsockopt(level, option, size)[4:8], sys.byteorder)


# SO_PEERCRED has process, user and group. The `struct xucred` of macOS begins with a version.
PEER_OPTION = (0, 1, 76) if sys.platform == "darwin" else (socket.SOL_SOCKET, 17, 12)


def start_daemon() -> int:
    """Start a daemon that outlives the host; of several, all but one end at once."""
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        signal.setitimer(signal.ITIMER_REAL, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        os.closerange(3, MAX_INHERITED_HANDLES)  # a host may wait for the end of its own pipes
        command = [sys.executable, "-I", "-m", "accord", "daemon", "run", "--directory", "."]
        os.execve(sys.executable, command, daemon_environment())  # noqa: S606 - an argument array
    finally:
        os._exit(1)


def has_failed(child: int) -> bool:
    """Whether the daemon that this process started ended with an error."""
    try:
        ended, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return False  # it had ended well before, because another daemon runs
    return ended == child and status != 0


MAX_INHERITED_HANDLES = 1024
ALLOCATOR = {"MALLOC_ARENA_MAX": "1"}  # for many short threads one arena is enough
SYSTEM_PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin"


def daemon_environment() -> dict[str, str]:
    """What a daemon started by a hook gets of the environment: nothing that a repository may set.

    Hosts let a repository's settings set variables, such as those for proxies and authorities.
    """
    return {"HOME": os.environ.get("HOME", "/"), "PATH": SYSTEM_PATH, **ALLOCATOR}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    # Without the interpreter's own end, which takes as long as the answer did.
    os._exit(code)
