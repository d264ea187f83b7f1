import { afterEach, expect, it } from "vitest";
import { keyboard, nameOf } from "./keyboard";

const press = (init: KeyboardEventInit, target: EventTarget = document.body) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init }));

afterEach(() => {
  document.body.textContent = "";
});

it("names keys as the map does", () => {
  const name = (init: KeyboardEventInit) => nameOf(new KeyboardEvent("keydown", init));
  expect(name({ key: "A" })).toBe("a");
  expect(name({ key: "S", shiftKey: true })).toBe("shift+s");
  expect(name({ key: "?", shiftKey: true })).toBe("?");
  expect(name({ key: "Enter", ctrlKey: true })).toBe("mod+enter");
  expect(name({ key: "Shift", shiftKey: true })).toBe("");
  expect(name({ key: "a", altKey: true })).toBe("");
});

it("runs letters outside fields only, and sequences in their order", () => {
  const ran: string[] = [];
  const binding = (keys: string, inFields = false) => ({
    keys,
    inFields,
    label: keys,
    group: "",
    run: () => void ran.push(keys),
  });
  const remove = keyboard.register([binding("a"), binding("g h"), binding("mod+enter", true)]);
  const field = document.createElement("input");
  document.body.append(field);
  press({ key: "a" }, field);
  press({ key: "a", repeat: true });
  expect(ran).toEqual([]);
  press({ key: "Enter", metaKey: true }, field);
  press({ key: "a" });
  press({ key: "h" });
  press({ key: "g" });
  press({ key: "h" });
  expect(ran).toEqual(["mod+enter", "a", "g h"]);
  remove();
  press({ key: "a" });
  expect(ran).toHaveLength(3);
});
