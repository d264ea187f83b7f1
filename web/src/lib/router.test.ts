import { describe, expect, it } from "vitest";
import { routeOf } from "./router.svelte";

describe("addresses", () => {
  it("lead to their screens", () => {
    expect(routeOf("/")).toEqual({ screen: "home" });
    expect(routeOf("/g/01ABC")).toEqual({ screen: "gate", gate: "01ABC" });
    expect(routeOf("/s/01ABC", "?at=412")).toEqual({
      screen: "session",
      session: "01ABC",
      at: 412,
    });
    expect(routeOf("/s/a%2Fb/f/c")).toEqual({ screen: "session", session: "a/b", fork: "c" });
    expect(routeOf("/board/T1")).toEqual({ screen: "board", task: "T1", repo: "" });
    expect(routeOf("/docket")).toMatchObject({ screen: "docket", session: "", item: "" });
    expect(routeOf("/docket/01ABC/release/DEPLOY", "?fork=x")).toEqual({
      screen: "docket",
      session: "01ABC",
      batch: "release",
      item: "DEPLOY",
      fork: "x",
    });
    expect(routeOf("/grants")).toEqual({ screen: "grants" });
    expect(routeOf("/s/01ABC/forks", "?a=x")).toEqual({
      screen: "forks",
      session: "01ABC",
      a: "x",
      b: "",
    });
  });

  it.each([
    ...["/", "/s/01ABC", "/s/01ABC/f/01DEF", "/g/01ABC", "/why", "/board", "/board/T1"],
    ...["/threads", "/docket/a/b/c", "/people", "/settings", "/grants", "/sign-in"],
  ])("%s has a screen, as the server answers there with the page", (path) => {
    expect(routeOf(path).screen).not.toBe("unknown");
  });

  it("that nobody knows say so, and broken ones do not throw", () => {
    expect(routeOf("/nowhere").screen).toBe("unknown");
    expect(routeOf("/g/%E0%A4%A")).toEqual({ screen: "gate", gate: "" });
    expect(routeOf("/s/a", "?at=-1")).toEqual({ screen: "session", session: "a" });
  });
});
