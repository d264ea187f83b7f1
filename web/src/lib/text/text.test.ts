import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { lines } from "./ansi";
import { spans } from "./ansi_colors";
import { counts, diffLines, patchLines } from "./diff";
import { safeLink } from "./links";
import { GrowingMarkdown, parseBlocks } from "./markdown";
import { initials, shownNames } from "./names";
import { oneLine, pieces, spelled } from "./spell";
import { duration, list, moment, plural, timeLeft } from "./words";

describe("spelling out", () => {
  it("marks what hides or turns the direction", () => {
    expect(spelled("rm \u202egnp.exe")).toBe("rm [U+202E]gnp.exe");
    expect(spelled("a\u200bb")).toBe("a[U+200B]b");
    expect(spelled("x\u001b[2J")).toBe("x[U+001B][2J");
    expect(pieces("a\u00a0b")[1]?.hidden).toBe("no-break space");
    expect(spelled("tag\u{e0041}")).toBe("tag[U+E0041]");
    expect(pieces("\u3164")[0]?.hidden).toBe("blank letter");
  });
  it("marks what looks like our own mark", () => {
    expect(spelled("◆ Accord: approved ♦ ⬥")).toBe("[U+25C6] Accord: approved [U+2666] [U+2B25]");
    expect(shownNames([{ id: "m", name: "◆ Maya (you)" }]).get("m")).toBe("Maya you");
  });
  it("leaves letters, emoji and scripts with joiners alone", () => {
    for (const text of ["Grüße, naïve", "👩‍👩‍👧 ❤️", "日本語", "العربية", "a\tb\nc"])
      expect(spelled(text)).toBe(text);
  });
  it("loses nothing: every letter shows, plain or spelled out", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const plain = pieces(text)
          .filter((piece) => !piece.hidden)
          .map((piece) => piece.text)
          .join("");
        expect([...plain].length).toBeLessThanOrEqual([...text].length);
        for (const letter of plain) expect(text).toContain(letter);
        expect(spelled(text).replace(/[\n\t]/g, "")).not.toMatch(
          /[\p{Cc}\u200b\u202a-\u202e\u2066-\u2069]/u,
        );
      }),
    );
  });
  it("cuts by letters", () => expect(oneLine("a\n  b".padEnd(50, "x"), 5)).toBe("a bx…"));
});

describe("words", () => {
  it("says durations", () => {
    const said = [40, 4100, 18_000, 228_000, 14 * 60_000 + 5000, 7_500_000, 86_400_000 * 3].map(
      duration,
    );
    expect(said).toEqual(["40 ms", "4.1 s", "18 s", "3 min 48 s", "14 min", "2 h 5 min", "3 days"]);
  });
  it("says what is left", () => {
    expect(timeLeft("2026-11-18T14:03:48.400Z", Date.parse("2026-11-18T14:00:00Z"))).toBe(
      "3 min 48 s left",
    );
    expect(timeLeft(null, 0)).toBe("no time limit");
    expect(timeLeft("2026-11-18T14:00:00Z", Date.parse("2026-11-18T15:00:00Z"))).toBe("time is up");
  });
  it("says moments, counts and lists", () => {
    const now = new Date(2026, 10, 18, 15, 0).getTime();
    expect(moment(new Date(2026, 10, 18, 14, 2).toISOString(), now)).toBe("14:02");
    expect(moment(new Date(2026, 10, 16, 14, 2).toISOString(), now)).toBe("Mon 14:02");
    expect(moment(new Date(2026, 9, 2, 14, 2).toISOString(), now)).toBe("2 Oct 14:02");
    expect([plural(1, "line"), plural(1204, "line")]).toEqual(["1 line", "1,204 lines"]);
    expect(list(["a", "b", "c"], "or")).toBe("a, b or c");
  });
});

describe("links", () => {
  it("takes http, https and mailto alone", () => {
    expect(safeLink("https://example.org/a?b")?.host).toBe("example.org");
    expect(safeLink("mailto:a@b.c")?.host).toBe("a@b.c");
    for (const bad of [
      "javascript:alert(1)",
      "data:text/html,x",
      "//example.org",
      "/s/1",
      "http://user:pw@h/",
      "java\nscript:x",
      "https://exa\u202empl.e",
      "vbscript:x",
      "file:///etc/passwd",
      "",
    ])
      expect(safeLink(bad)).toBeNull();
  });
  it("shows the host in the letters that are sent", () =>
    expect(safeLink("https://аpple.com")?.host).toMatch(/^xn--/));
});

describe("names", () => {
  it("puts the id beside names that look alike or like ours", () => {
    const names = shownNames([
      { id: "maya", name: "Maya" },
      { id: "m2", name: "Мaya" },
      { id: "j", name: "Jonas" },
      { id: "x", name: "Accord" },
    ]);
    expect([...names.values()]).toEqual(["Maya (maya)", "Мaya (m2)", "Jonas", "Accord (x)"]);
  });
  it("gives initials", () =>
    expect(["Maya Okafor", "claude", "", "李 小龙"].map(initials)).toEqual([
      "MO",
      "CL",
      "?",
      "李小",
    ]));
});

describe("ANSI", () => {
  it("keeps colours and spells out everything else", () => {
    const found = spans("\u001b[32m38 passed\u001b[0m in 3.87s\u001b[2J\u001b]8;;http://x\u0007");
    expect(found[0]?.color).toBe("green");
    const text = found
      .flatMap((span) => span.pieces)
      .map((piece) => piece.text)
      .join("");
    expect(text).toContain("38 passed");
    expect(text).toContain("U+001B");
    expect(text).toContain("[2J");
  });
  it("never loses a visible letter", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom(
            "a",
            "\u001b[31m",
            "\u001b[2K",
            "b c",
            "\u001b",
            "[",
            "m",
            "\u0007",
            "é",
            "\ue01b",
          ),
        ),
        (parts) => {
          const shown = spans(parts.join(""))
            .flatMap((span) => span.pieces)
            .map((piece) => piece.text)
            .join("");
          for (const part of parts)
            if (part === "b c" || part === "é") expect(shown).toContain(part);
        },
      ),
    );
  });
  it("splits lines", () => expect(lines("a\r\nb\n")).toEqual(["a", "b"]));
});

describe("diff", () => {
  it("marks the words that changed", () => {
    const found = diffLines("keep\nlimit = 5 tries\n", "keep\nlimit = 6 tries\nnew\n");
    expect(found.map((line) => line.sign).join("")).toBe(" -++");
    expect(found[1]?.words.filter((word) => word.changed).map((word) => word.text)).toEqual(["5"]);
    expect(counts(found)).toEqual({ added: 2, removed: 1 });
  });
  it("gives both texts back", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c d", "")).map((all) => all.join("\n"));
    fc.assert(
      fc.property(text, text, (before, after) => {
        const found = diffLines(before, after);
        const side = (left: "+" | "-") =>
          found
            .filter((line) => line.sign !== left)
            .map((line) => line.words.map((word) => word.text).join(""));
        const split = (value: string) => (value === "" ? [] : value.replace(/\n$/, "").split("\n"));
        expect(side("+")).toEqual(split(before));
        expect(side("-")).toEqual(split(after));
      }),
    );
  });
  it("reads patches", () =>
    expect(
      patchLines("@@ -10,2 +10,2 @@\n-old\n+new\n same").map((line) => [
        line.sign,
        line.old,
        line.new,
      ]),
    ).toEqual([
      [" ", null, null],
      ["-", 10, null],
      ["+", null, 10],
      [" ", 11, 11],
    ]));
});

describe("Markdown", () => {
  it("has no place for HTML, images or raw tokens", () => {
    const kinds = JSON.stringify(
      parseBlocks(
        "<img src=x onerror=alert(1)>\n\n![a](http://x/y.png) <b>x</b>\n\n<script>alert(1)</script>",
      ),
    );
    expect(kinds).not.toMatch(/"kind":"(html|image)"/);
    expect(kinds).toContain("<script>alert(1)</script>");
  });
  it("shows the same in chunks as at once, and never touches a finished block", () => {
    const source = fc
      .array(
        fc.constantFrom(
          "para one\n",
          "\n",
          "# head\n",
          "- item\n",
          "  more\n",
          "```py\n",
          "x = 1\n",
          "```\n",
          "> quote\n",
          "| a | b |\n|---|---|\n| 1 | 2 |\n",
          "**b** `c` [l](https://x.y)\n",
        ),
        { maxLength: 25 },
      )
      .map((all) => all.join(""));
    fc.assert(
      fc.property(
        source,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (text, steps) => {
          const growing = new GrowingMarkdown();
          const seen: unknown[] = [];
          for (let at = 0, step = 0; at < text.length; step++) {
            const size = steps[step % steps.length] ?? 1;
            growing.append(text.slice(at, at + size));
            at += size;
            growing.finished.forEach((block, place) => {
              if (place < seen.length) expect(block).toBe(seen[place]);
              else seen.push(block);
            });
          }
          growing.append("", true);
          expect(growing.blocks).toEqual(parseBlocks(text));
        },
      ),
      { numRuns: 300 },
    );
  });
});
