import { expect, it } from "vitest";
import { viewOf } from "./fork_view";
import { TRUNK } from "./rows";

const forks = [
  { id: "a", parent: null },
  { id: "b", parent: "a" },
];

it("shows of each parent what came before the record of the fork", () => {
  const begins = new Map([
    ["a", 10],
    ["b", 50],
  ]);
  expect([...viewOf("b", forks, begins)]).toEqual([
    ["b", Infinity],
    ["a", 50],
    [null, 10],
  ]);
});

it("shows nothing of a parent while the beginning of the fork is not read", () => {
  expect(viewOf("a", forks, new Map()).get(null)).toBe(-1);
});

it("is the trunk without a fork, and for one that is not known", () => {
  expect([...viewOf(null, forks, new Map())]).toEqual([...TRUNK]);
  expect(viewOf("gone", forks, new Map())).toBe(TRUNK);
});
