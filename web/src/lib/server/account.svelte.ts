import { claimedName, claimName, Refusal, request } from "./http";
import type { Account, SignedIn } from "./types";

/** Who is signed in, as far as the server said. */
type State =
  | { is: "asking" }
  | { is: "away"; why: string }
  | { is: "signed out"; why: string }
  | { is: "open" }
  | { is: "signed in"; account: Account };

const CODE = /^#code=([^&]+)$/;
/** Says to the other tabs that this browser was signed in or out. */
const TABS = "accord.account";

class AccountStore {
  state = $state<State>({ is: "asking" });
  #tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(TABS);

  constructor() {
    if (this.#tabs) this.#tabs.onmessage = () => void this.load();
  }

  get current(): Account | undefined {
    return this.state.is === "signed in" ? this.state.account : undefined;
  }

  /** Use the code in the address if there is one, and ask the server who this is. */
  async start(): Promise<void> {
    // A link that is opened in a tab where the page is open already changes only the fragment.
    window.addEventListener("hashchange", () => {
      const code = takeCode();
      if (code) void this.signIn(code);
    });
    const code = takeCode();
    if (code) await this.signIn(code);
    else await this.load();
  }

  async load(): Promise<void> {
    try {
      this.state = { is: "signed in", account: await request<Account>("GET", "/sign-in") };
    } catch (error) {
      this.#failed(error);
    }
  }

  async signIn(code: string): Promise<void> {
    this.state = { is: "asking" };
    try {
      const account = await request<SignedIn>("POST", "/sign-in", { body: { code } });
      this.state = { is: "signed in", account };
      this.#tabs?.postMessage("signed in");
    } catch (error) {
      // A link that was used before is harmless for somebody who is signed in already.
      await this.load();
      if (this.state.is !== "signed in" && error instanceof Refusal) {
        this.state = { is: "signed out", why: error.message };
      }
    }
  }

  async signOut(): Promise<void> {
    await request("DELETE", "/sign-in");
    this.state = { is: "signed out", why: "You signed out." };
    this.#tabs?.postMessage("signed out");
  }

  /** A request was refused because the credential is gone. */
  ended(why: string): void {
    if (this.state.is !== "signed in") return;
    this.state = { is: "signed out", why };
    this.#tabs?.postMessage("signed out");
  }

  /** On a server without tokens a person only says a name. */
  claim(name: string): void {
    claimName(name.trim());
    this.#open();
  }

  #open(): void {
    const id = claimedName();
    this.state = id ? { is: "signed in", account: trusted(id) } : { is: "open" };
  }

  #failed(error: unknown): void {
    if (!(error instanceof Refusal)) this.state = { is: "away", why: "The server is away." };
    else if (error.isUnauthenticated) {
      const wasIn = this.state.is === "signed in";
      this.state = { is: "signed out", why: wasIn ? error.message : "" };
    } else if (error.code === "INVALID_STATE") this.#open();
    else this.state = { is: "away", why: error.message };
  }
}

/** The one-time code of a sign-in link; it is erased from the address at once. */
export function takeCode(): string | undefined {
  const code = CODE.exec(location.hash)?.[1];
  if (location.hash.startsWith("#code=")) {
    history.replaceState(history.state, "", location.pathname + location.search);
  }
  return code;
}

/** The code of a link or a bare code that somebody pasted. */
export function codeIn(text: string): string {
  const at = text.indexOf("#code=");
  return at < 0 ? text.trim() : text.slice(at + 6).replace(/['"\s].*$/s, "");
}

function trusted(id: string): Account {
  const none = { server: "", address: location.host, device: "", expires_at: "" };
  return { ...none, id, type: "human", roles: [], workspace: "default", name: id };
}

export const account = new AccountStore();
