"""A small host with an input line like Claude Code's: `python prompting_host.py LOG [WORK_S]`.

It draws its box, takes keys and pastes, reports its states, and writes every prompt that was sent
as one JSON line to LOG. A turn takes WORK_S seconds. `/ask` opens a dialog that a key answers.
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


def main() -> None:
    log, work_s = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    tty.setraw(0)
    os.write(1, b"\x1b[?2004h\x1b]7501;?\x1b\\")
    text, said, rest, waits_until = "", list[str](), b"", 0.0
    answer = b"\x1b]7501;?\x1b\\"
    state("idle")
    draw(text, said)
    while True:
        ready, _, _ = select.select([0], [], [], 0.02)
        if waits_until and time.monotonic() >= waits_until:
            waits_until = 0.0
            state("done")
            draw(text, said)
        if not ready:
            continue
        rest = (rest + os.read(0, 1 << 16)).replace(answer, b"")
        while rest:
            if rest.startswith(b"\x1b"):
                if found := PASTE.match(rest):
                    text += found[1].decode().replace("\r", "\n")
                    rest = rest[found.end() :]
                    continue
                if b"\x1b[200~".startswith(rest[:6]) or rest.startswith(b"\x1b[200~"):
                    break  # the rest of the paste is to come
            key, rest = rest[:1], rest[1:]
            if key == b"\x04":
                return
            if key == b"\r":
                with Path(log).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(text) + "\n")
                said.append(text.split("\n")[0])
                text = ""
                if work_s:
                    state("working")
                    waits_until = time.monotonic() + work_s
            elif key == b"\x7f":
                text = text[:-1]
            else:
                text += key.decode("utf-8", "replace")
        draw(text, said)


if __name__ == "__main__":
    main()
