import { home } from "./server/home.svelte";
import type { GateCard } from "./server/types";
import { oneLine } from "./text/spell";
import { timeLeft } from "./text/words";

const CHOICE = "accord.notices";
/** More than this many at once become one. */
const MOST = 3;

/** Tells a person who looks elsewhere that a gate needs their vote; withdrawn when it is settled. */
class Notices {
  state = $state<"none" | "off" | "denied" | "on">(stateNow());
  readonly #shown = new Map<string, Notification>();
  #known = new Set<string>();

  /** Asked for by the person, never when the page opens. */
  async ask(): Promise<void> {
    await Notification.requestPermission();
    localStorage.setItem(CHOICE, "on");
    this.state = stateNow();
  }

  /** What waits now; call it whenever that changes. */
  update(gates: readonly GateCard[]): void {
    const mine = gates.filter((gate) => gate.may_approve && !gate.my_vote);
    const waiting = new Set(mine.map((gate) => gate.id));
    for (const [id, notice] of this.#shown) {
      if (waiting.has(id)) continue;
      notice.close();
      this.#shown.delete(id);
    }
    const fresh = home.isLoaded ? mine.filter((gate) => !this.#known.has(gate.id)) : [];
    this.#known = waiting;
    if (this.state !== "on" || document.visibilityState === "visible") return;
    if (fresh.length > MOST) this.#show("many", `${fresh.length} decisions wait for you`, "", "/");
    else for (const gate of fresh) this.#tell(gate);
  }

  /** Who and what; the call itself and secrets stay on the page. */
  #tell(gate: GateCard): void {
    const who = oneLine(gate.people[gate.initiator] ?? gate.initiator, 40);
    const risk = gate.action ? `${gate.action.risk_level} risk, ` : "";
    const body = `${oneLine(gate.session_name, 60)}, ${risk}${timeLeft(gate.expires_at, Date.now())}`;
    this.#show(gate.id, `${who} asks for your decision`, body, `/g/${gate.id}`);
  }

  #show(tag: string, title: string, body: string, path: string): void {
    const notice = new Notification(title, { body, tag, silent: true });
    notice.onclick = () => {
      window.focus();
      location.assign(path);
      notice.close();
    };
    this.#shown.set(tag, notice);
  }
}

function stateNow(): "none" | "off" | "denied" | "on" {
  if (typeof Notification === "undefined") return "none";
  if (Notification.permission === "denied") return "denied";
  const chosen = localStorage.getItem(CHOICE) === "on";
  return Notification.permission === "granted" && chosen ? "on" : "off";
}

export const notices = new Notices();
