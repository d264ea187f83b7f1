"""Runs a command under the relay with links that do as told, and then die.

`python -m tests.helpers.terminals.scripted_link PLAN SAID COMMAND …`. PLAN holds one line for each
link: the words it says, one after the other, once the host has drawn what came before. SAID gets
one line for each answer of the relay. After the last link there is none.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from accord.supervisor.frames import FrameKind, FrameReader, with_fields
from accord.supervisor.relay import Relay

PROMPT = "[accord wake] first line\nsecond line"
WAKE = "wake-1"
CALM_S = 0.3


class ScriptedLink:
    """Says PASTE, ENTER or ABANDON with all output seen; STALE-ENTER with less; KEY waits for one.

    FREEZE never ends.
    """

    def __init__(self, relay: socket.socket, said: Path) -> None:
        self.relay, self.said = relay, said
        self.frames = FrameReader()
        self.output = self.keystrokes = 0
        self.answers: list[str] = []

    def read(self, timeout_s: float | None) -> bool:
        """Whether anything came within the time."""
        self.relay.settimeout(timeout_s)
        try:
            data = self.relay.recv(1 << 16)
        except TimeoutError:
            return False
        for frame in self.frames.feed(data):
            if frame.kind is FrameKind.BEGIN:
                self.output = frame.fields.get("output", self.output)
            elif frame.kind is FrameKind.OUTPUT:
                self.output += len(frame.payload)
            elif frame.kind is FrameKind.KEYS:
                self.keystrokes = frame.fields["count"]
            elif frame.kind is FrameKind.TYPED:
                self.answers.append(frame.fields["what"])
        return bool(data)

    def do(self, word: str) -> None:
        while self.read(CALM_S):
            pass
        seen: dict[str, Any] = {"wake": WAKE, "seen_output": self.output}
        if word == "KEY":
            before = self.keystrokes
            while self.keystrokes == before:
                self.read(None)
        elif word == "FREEZE":
            while self.read(None):
                pass
        elif word == "ABANDON":
            self.relay.sendall(with_fields(FrameKind.ABANDON, wake=WAKE))
        elif word == "PASTE":
            more = {"text": PROMPT, "quiet_s": 0.0, "seen_keystrokes": self.keystrokes}
            self.answer(with_fields(FrameKind.PASTE, **seen, **more))
        else:
            seen["seen_output"] -= word == "STALE-ENTER"
            self.answer(with_fields(FrameKind.ENTER, **seen))

    def answer(self, frame: bytes) -> None:
        self.relay.sendall(frame)
        while not self.answers:
            self.read(None)
        with self.said.open("a", encoding="utf-8") as file:
            file.write(f"{self.answers.pop()}\n")


def main() -> int:
    plan, said, *command = sys.argv[1:]
    if plan == "LINK":
        link = ScriptedLink(socket.socket(fileno=int(command[0])), Path(said))
        for word in json.loads(command[1]):
            link.do(word)
        return 0
    lines = Path(plan).read_text("utf-8").splitlines()

    def start_link() -> socket.socket | None:
        if not lines:
            return None
        ours, theirs = socket.socketpair()
        words = json.dumps(lines.pop(0).split())
        own = (sys.executable, "-m", "tests.helpers.terminals.scripted_link", "LINK", said)
        fd = theirs.fileno()
        subprocess.Popen((*own, str(fd), words), pass_fds=(fd,))
        theirs.close()
        return ours

    return Relay(command, os.environ, start_link, facts={"runtime": "claude_code"}).run()


if __name__ == "__main__":
    sys.exit(main())
