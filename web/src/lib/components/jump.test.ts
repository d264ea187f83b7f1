import { expect, it } from "vitest";
import { closeness, found, type Target } from "./jump";

const target = (label: string): Target => ({ label, group: "Sessions", run: () => {} });
const labels = (typed: string, ...all: string[]) =>
  found(all.map(target), typed).map((each) => each.label);

it("puts what begins with the letters first", () => {
  expect(labels("log", "Catalogue", "Rate-limit the login", "Login page")).toEqual([
    "Login page",
    "Rate-limit the login",
    "Catalogue",
  ]);
});

it("finds letters in order and nothing else", () => {
  expect(closeness("Invoice PDF export", "ipe")).toBe(1);
  expect(closeness("Invoice PDF export", "xyz")).toBe(0);
});

it("keeps the order without letters, and shows a screenful", () => {
  expect(labels("", "b", "a")).toEqual(["b", "a"]);
  expect(
    found(
      Array.from({ length: 40 }, (_, at) => target(`s${at}`)),
      "",
    ).length,
  ).toBe(12);
});
