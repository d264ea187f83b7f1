"""A small host with an input line like Claude Code's: `python prompting_host.py LOG [WORK_S]`.

It draws its box, takes keys and pastes, reports its states, and writes every prompt that was sent
as one JSON line to LOG. A turn takes WORK_S seconds. `/ask` opens a dialog that the next key
answers, which LOG shows too.
"""

import json
import os
import re
import select
import sys
import time
import tty
from pathlib import Path

PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
PASTE_BEGIN = b"\x1b[200~"
STATE_QUESTION = b"\x1b]7501;?\x1b\\"  # and the answer that we are understood


def draw(text: str, said: list[str]) -> None:
    lines = text.split("\n")
    box = ["─" * 40, f"❯ {lines[0]}", *(f"  {line}" for line in lines[1:]), "─" * 40, "  ready"]
    top = max(1, 22 - len(box))
    body = "\x1b[H\x1b[2J" + "".join(f"\x1b[{1 + at};1H{line}" for at, line in enumerate(said[-5:]))
    body += "".join(f"\x1b[{top + at};1H{line[:78]}" for at, line in enumerate(box))
    body += f"\x1b[{top + len(lines)};{min(78, 3 + len(lines[-1]))}H"
    os.write(1, body.encode())


def state(name: str) -> None:
    os.write(1, f"\x1b]7501;state={name}:app=claude-code\x07".encode())


class Host:
    """What was typed so far, and whether it works or asks."""

    def __init__(self, log: str, work_s: float) -> None:
        self.log, self.work_s = log, work_s
        self.text, self.said, self.rest = "", list[str](), b""
        self.works_until, self.asks = 0.0, False

    def draw(self) -> None:
        if self.asks:
            os.write(1, b"\x1b[H\x1b[2JMay I? [y/n] ")
        else:
            draw(self.text, self.said)

    def let_time_pass(self) -> None:
        if self.works_until and time.monotonic() >= self.works_until:
            self.works_until = 0.0
            state("done")
            self.draw()

    def take(self, data: bytes) -> bool:
        """Whether it goes on."""
        self.rest += data
        while self.rest:
            if found := PASTE.match(self.rest):
                self.text += found[1].decode().replace("\r", "\n")
                self.rest = self.rest[found.end() :]
                continue
            if PASTE_BEGIN.startswith(self.rest[:6]) and self.rest[:1] == b"\x1b":
                break  # the rest of the paste is to come
            key, self.rest = self.rest[:1], self.rest[1:]
            if key == b"\x04" and not self.asks:
                return False
            self.press(key)
        self.draw()
        return True

    def press(self, key: bytes) -> None:
        if self.asks:
            self.asks = False
            self.write(f"answered {key!r}")
            state("idle")
        elif key == b"\r":
            self.send()
        elif key == b"\x7f":
            self.text = self.text[:-1]
        else:
            self.text += key.decode("utf-8", "replace")

    def send(self) -> None:
        self.write(self.text)
        self.said.append(self.text.split("\n")[0])
        self.asks, self.text = self.text == "/ask", ""
        if self.asks:
            state("blocked")
        elif self.work_s:
            state("working")
            self.works_until = time.monotonic() + self.work_s

    def write(self, line: str) -> None:
        with Path(self.log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def main() -> None:
    host = Host(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h" + STATE_QUESTION)
    state("idle")
    host.draw()
    while True:
        ready, _, _ = select.select([0], [], [], 0.02)
        host.let_time_pass()
        if ready and not host.take(os.read(0, 1 << 16).replace(STATE_QUESTION, b"")):
            return


if __name__ == "__main__":
    main()
