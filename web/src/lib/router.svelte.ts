/** Addresses of the page, and going from one to another without loading it again. */

export type Route =
  | { screen: "home" }
  | { screen: "gate"; gate: string }
  | { screen: "session"; session: string; fork?: string; at?: number }
  | { screen: "forks"; session: string; a: string; b: string }
  | { screen: "board"; task: string; repo: string }
  | { screen: "threads"; thread?: string }
  | { screen: "why"; at: string }
  | { screen: "docket"; session: string; batch: string; item: string; fork: string }
  | { screen: "grants" }
  | { screen: "people" }
  | { screen: "settings" }
  | { screen: "unknown" };

type Pattern = [RegExp, (found: string[], query: URLSearchParams) => Route];

const PATTERNS: Pattern[] = [
  [/^\/$/, () => ({ screen: "home" })],
  [/^\/g\/([^/]+)$/, ([gate = ""]) => ({ screen: "gate", gate })],
  [/^\/s\/([^/]+)(?:\/f\/([^/]+))?$/, sessionRoute],
  [
    /^\/s\/([^/]+)\/forks$/,
    ([session = ""], query) => ({
      screen: "forks",
      session,
      a: query.get("a") ?? "",
      b: query.get("b") ?? "",
    }),
  ],
  [
    /^\/threads(?:\/([^/]+))?$/,
    ([thread]) => ({ screen: "threads", ...(thread ? { thread } : {}) }),
  ],
  [
    /^\/board(?:\/([^/]+))?$/,
    ([task = ""], query) => ({ screen: "board", task, repo: query.get("repo") ?? "" }),
  ],
  [/^\/why$/, (_, query) => ({ screen: "why", at: query.get("at") ?? "" })],
  [
    /^\/docket(?:\/([^/]+)\/([^/]+)(?:\/([^/]+))?)?$/,
    ([session = "", batch = "", item = ""], query) => ({
      screen: "docket",
      session,
      batch,
      item,
      fork: query.get("fork") ?? "",
    }),
  ],
  [/^\/grants$/, () => ({ screen: "grants" })],
  [/^\/people$/, () => ({ screen: "people" })],
  [/^\/settings$/, () => ({ screen: "settings" })],
  // Whoever is not signed in sees how to come in at any address.
  [/^\/sign-in$/, () => ({ screen: "home" })],
];

function sessionRoute([session = "", fork]: string[], query: URLSearchParams): Route {
  const at = Number(query.get("at"));
  return {
    screen: "session",
    session,
    ...(fork ? { fork } : {}),
    ...(Number.isInteger(at) && at > 0 ? { at } : {}),
  };
}

export function routeOf(path: string, search = ""): Route {
  for (const [pattern, make] of PATTERNS) {
    const found = pattern.exec(path);
    if (found) return make(found.slice(1).map(decoded), new URLSearchParams(search));
  }
  return { screen: "unknown" };
}

function decoded(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? "");
  } catch {
    return "";
  }
}

class Router {
  route = $state.raw<Route>(here());

  constructor() {
    if (typeof window === "undefined") return;
    window.addEventListener("popstate", () => this.#take());
    document.addEventListener("click", (event) => this.#follow(event));
  }

  go(path: string, { replace = false } = {}): void {
    if (path === location.pathname + location.search + location.hash) return;
    if (replace) history.replaceState(null, "", path);
    else history.pushState(null, "", path);
    this.#take();
  }

  #take(): void {
    this.route = here();
  }

  /** Links of ours stay on the page; everything else is the browser's. */
  #follow(event: MouseEvent): void {
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey);
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!isPlain || event.defaultPrevented || !(link instanceof HTMLAnchorElement)) return;
    if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (routeOf(link.pathname).screen === "unknown") return;
    event.preventDefault();
    this.go(link.pathname + link.search + link.hash);
  }
}

function here(): Route {
  return typeof location === "undefined"
    ? { screen: "home" }
    : routeOf(location.pathname, location.search);
}

export const router = new Router();
