import { expect, it } from "vitest";
import { remindersBetween, remindersOf } from "./reminders";

const MINUTE = 60_000;
const gate = (id: string, minutes: number | null) => ({
  id,
  created_at: new Date(0).toISOString(),
  expires_at: minutes === null ? null : new Date(minutes * MINUTE).toISOString(),
});

it("reminds at half time and one minute before the end", () => {
  expect(remindersOf(gate("a", 10))).toEqual([5 * MINUTE, 9 * MINUTE]);
  expect(remindersOf(gate("a", 1))).toEqual([MINUTE / 2]);
  expect(remindersOf(gate("a", null))).toEqual([]);
});

it("names each gate once, and when to look again", () => {
  const waiting = [gate("a", 10), gate("b", 4)];
  expect(remindersBetween(waiting, 0, MINUTE)).toEqual({ due: [], next: 2 * MINUTE });
  expect(remindersBetween(waiting, MINUTE, 5 * MINUTE)).toEqual({
    due: ["a", "b"],
    next: 9 * MINUTE,
  });
  expect(remindersBetween(waiting, 5 * MINUTE, 9 * MINUTE)).toEqual({
    due: ["a"],
    next: undefined,
  });
});

it("is silent about a gate that was decided", () => {
  expect(remindersBetween([], 0, 9 * MINUTE)).toEqual({ due: [], next: undefined });
});
