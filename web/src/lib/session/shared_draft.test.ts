import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Envelope } from "./envelope";
import { type SavedDraft, SharedDraft } from "./shared_draft";
import { merge3 } from "./text_merge";

describe("merge3", () => {
  it("keeps both when two people change different words of one line", () => {
    expect(
      merge3("allow 5 tries a minute", "allow 6 tries a minute", "allow 5 tries an hour"),
    ).toBe("allow 6 tries an hour");
  });
  it("keeps both when two people add at the end", () => {
    expect(merge3("one", "one two", "one three").split(" ").sort()).toEqual([
      "one",
      "three",
      "two",
    ]);
  });
  it("keeps a word once into which two people type", () => {
    expect(merge3("llow", "Allow", "Bllow and")).toBe("ABllow and");
    expect(merge3("limit", "the limit", "limits")).toBe("the limits");
    expect(merge3("minute", "mXinutYe", "minZute")).toBe("mXinZutYe");
  });
  it("takes a change that both made once", () => {
    expect(merge3("a b c", "a x c", "a x c")).toBe("a x c");
  });
  it("gives back the other side when one did not change", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (base, other) => {
        expect(merge3(base, base, other)).toBe(other);
        expect(merge3(base, other, base)).toBe(other);
      }),
    );
  });
});

/** People who type words of their own; the server echoes what it takes in one order, at its own pace. */
class Writers {
  readonly drafts: SharedDraft[];
  readonly log: Envelope[] = [];
  readonly read: number[];
  readonly waiting: Envelope[] = [];
  typed: string[] = [];
  #ids = 0;

  constructor(count: number) {
    this.drafts = Array.from({ length: count }, (_, at) => new SharedDraft(`p${at}`));
    this.read = this.drafts.map(() => 0);
  }

  type(who: number, place: number, newLine: boolean): void {
    const draft = this.drafts[who] as SharedDraft;
    const word = `w${this.typed.length}`;
    this.typed.push(word);
    const words = draft.local.split(/(\s)/);
    words.splice(
      Math.min(words.length, place * 2),
      0,
      `${newLine ? "\n" : " "}${word}${newLine ? "\n" : " "}`,
    );
    draft.edit(words.join(""));
  }

  /** One letter that nobody else types, anywhere, as in the middle of a word. */
  typeLetter(who: number, place: number): void {
    const draft = this.drafts[who] as SharedDraft;
    const letter = String.fromCodePoint(0x4e00 + this.typed.length);
    this.typed.push(letter);
    const letters = [...draft.local];
    letters.splice(place % (letters.length + 1), 0, letter);
    draft.edit(letters.join(""));
  }

  send(who: number): void {
    const draft = this.drafts[who] as SharedDraft;
    const id = `d${this.#ids}`;
    const next = draft.next(id);
    if (!next) return;
    this.#ids++;
    const ref = next.ref;
    this.waiting.push({
      v: 1,
      id,
      ts: "",
      session: "s",
      sender: draft.me,
      type: "prompt.draft",
      seq: 0,
      payload: { content: next.content, contributors: next.contributors },
      ref,
      causal_refs: next.causalRefs,
    });
  }

  accept(which: number): void {
    if (!this.waiting.length) return;
    this.log.push(...this.waiting.splice(which % this.waiting.length, 1));
  }

  hear(who: number): void {
    const at = this.read[who] ?? 0;
    const message = this.log[at];
    if (!message) return;
    this.read[who] = at + 1;
    this.drafts[who]?.echo(message);
  }

  settle(): void {
    for (let round = 0; round < 200; round++) {
      for (const who of this.drafts.keys()) this.send(who);
      while (this.waiting.length) this.accept(0);
      this.drafts.forEach((_, who) => {
        while ((this.read[who] ?? 0) < this.log.length) this.hear(who);
      });
      if (this.drafts.every((draft) => !draft.inFlight && !draft.unsent)) return;
    }
    throw new Error("did not settle");
  }
}

describe("SharedDraft", () => {
  it("converges, and no word is lost or doubled, in any order of typing, sending and hearing", () => {
    const act = fc.record({
      what: fc.nat(3),
      who: fc.nat(3),
      place: fc.nat(40),
      line: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 4 }),
        fc.array(act, { maxLength: 80 }),
        (count, acts) => {
          const room = new Writers(count);
          for (const { what, who, place, line } of acts) {
            const person = who % count;
            if (what === 0) room.type(person, place, line);
            else if (what === 1) room.send(person);
            else if (what === 2) room.accept(place);
            else room.hear(person);
          }
          room.settle();
          const texts = room.drafts.map((draft) => draft.local);
          expect(new Set(texts).size).toBe(1);
          const words = (texts[0] ?? "").split(/\s+/).filter(Boolean);
          expect([...words].sort()).toEqual([...room.typed].sort());
        },
      ),
      { numRuns: 300 },
    );
  });

  it("converges with every letter once, also where all type into one word", () => {
    const act = fc.record({ what: fc.nat(4), who: fc.nat(2), place: fc.nat(12) });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const room = new Writers(3);
        for (const { what, who, place } of acts) {
          if (what < 2) room.typeLetter(who, place);
          else if (what === 2) room.send(who);
          else if (what === 3) room.accept(place);
          else room.hear(who);
        }
        room.settle();
        const texts = room.drafts.map((draft) => draft.local);
        expect(new Set(texts).size).toBe(1);
        const letters = [...(texts[0] ?? "")].filter((letter) => letter !== " ");
        expect(letters.sort()).toEqual([...room.typed].sort());
      }),
      { numRuns: 300 },
    );
  });

  it("hands what was typed after sending to the next prompt", () => {
    const draft = new SharedDraft("maya");
    draft.edit("first");
    draft.next("d1");
    draft.echo({
      v: 1,
      id: "d1",
      ts: "",
      session: "s",
      sender: "maya",
      type: "prompt.draft",
      payload: { content: "first", contributors: ["maya"] },
    });
    draft.edit("first and more");
    draft.submitted({
      v: 1,
      id: "p1",
      ts: "",
      session: "s",
      sender: "jonas",
      type: "prompt.submit",
      ref: "d1",
      payload: { content: "first" },
    });
    expect(draft.local).toBe("and more");
    expect(draft.root).toBeNull();
  });
});

it("goes on from what a tab kept, without saying anything twice to those who heard it", () => {
  const [maya, jonas] = [new SharedDraft("maya"), new SharedDraft("jonas")];
  const say = (id: string, by: SharedDraft, next: ReturnType<SharedDraft["next"]>) => ({
    v: 1,
    id,
    ts: "",
    session: "s",
    sender: by.me,
    type: "prompt.draft",
    payload: { content: next?.content, contributors: next?.contributors },
    ...(next?.ref ? { ref: next.ref } : {}),
    causal_refs: next?.causalRefs ?? [],
  });
  maya.edit("five tries");
  const first = say("1", maya, maya.next("1"));
  for (const each of [maya, jonas]) each.echo(first);
  maya.edit("five tries a minute");
  const later = new SharedDraft("maya");
  later.restore(maya.saved() as SavedDraft);
  expect(later.unsent).toBe(true);
  jonas.edit("at most five tries");
  const his = say("2", jonas, jonas.next("2"));
  for (const each of [later, jonas]) each.echo(his);
  const hers = say("3", later, later.next("3"));
  for (const each of [later, jonas]) each.echo(hers);
  expect([later.local, jonas.local]).toEqual(Array(2).fill("at most five tries a minute"));
  expect(new SharedDraft("maya").saved()).toBeNull();
});
