import { expect, it } from "vitest";
import { Steady } from "./steady";

it("is steady only some time after it appeared, moved, or asked something else", () => {
  let now = 1000;
  let top = 10;
  const element = document.createElement("div");
  Object.defineProperty(element, "offsetTop", { get: () => top });
  const steady = new Steady(() => now);
  const stop = steady.watch(element);
  expect(steady.isSteady).toBe(false);
  now += 600;
  expect(steady.isSteady).toBe(true);
  top = 60;
  expect(steady.isSteady).toBe(false);
  now += 600;
  expect(steady.isSteady).toBe(true);
  steady.restart();
  expect(steady.isSteady).toBe(false);
  stop();
});
