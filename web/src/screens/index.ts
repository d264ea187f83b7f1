import type { Component } from "svelte";
import type { Route } from "../lib/router.svelte";

interface Screen {
  title: string;
  // biome-ignore lint/suspicious/noExplicitAny: each screen takes its route, which differs
  load: () => Promise<{ default: Component<any> }>;
}

/** Which component shows an address; each is loaded when it is first needed, with its `route`. */
const SCREENS: Partial<Record<Route["screen"], Screen>> = {
  session: { title: "Session", load: () => import("./Session.svelte") },
  home: { title: "Home", load: () => import("./Home.svelte") },
  gate: { title: "Gate", load: () => import("./Gate.svelte") },
  forks: { title: "Forks", load: () => import("./Forks.svelte") },
  why: { title: "Why", load: () => import("./Why.svelte") },
  threads: { title: "Threads", load: () => import("./Threads.svelte") },
  board: { title: "Board", load: () => import("./Board.svelte") },
  docket: { title: "Docket", load: () => import("./Docket.svelte") },
  grants: { title: "Standing grants", load: () => import("./Grants.svelte") },
  people: { title: "People", load: () => import("./People.svelte") },
  settings: { title: "Settings", load: () => import("./Settings.svelte") },
};
const UNKNOWN: Screen = { title: "Not found", load: () => import("./Unknown.svelte") };

export function screenOf(route: Route): Screen {
  return SCREENS[route.screen] ?? UNKNOWN;
}
