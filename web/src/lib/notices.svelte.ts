import { questionOf } from "./gate/call";
import { preferences } from "./preferences.svelte";
import { remindersBetween } from "./reminders";
import { home } from "./server/home.svelte";
import type { GateCard } from "./server/types";
import { chime } from "./sound";
import { oneLine } from "./text/spell";
import { plural, timeLeft } from "./text/words";
import { type Notice, showByWorker } from "./worker_notices";

const CHOICE = "accord.notices";
const MANY = "many";
/** More than this many at once become one. */
const MOST = 3;

/** Tells a person who looks elsewhere that a gate needs their vote; withdrawn when it is settled. */
class Notices {
  state = $state<"none" | "off" | "denied" | "on">(stateNow());
  readonly #shown = new Map<string, Notice>();
  #waiting: readonly GateCard[] = [];
  #known = new Set<string>();
  #looked = Date.now();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Asked for by the person, never when the page opens. */
  async ask(): Promise<void> {
    await Notification.requestPermission();
    localStorage.setItem(CHOICE, "on");
    this.state = stateNow();
  }

  /** What waits now; call it whenever that changes. */
  update(gates: readonly GateCard[]): void {
    this.#waiting = gates.filter((gate) => gate.may_approve && !gate.my_vote);
    const waiting = new Set(this.#waiting.map((gate) => gate.id));
    for (const [tag, notice] of this.#shown) {
      const isOver = tag === MANY ? waiting.size === 0 : !waiting.has(tag);
      if (!isOver) continue;
      notice.close();
      this.#shown.delete(tag);
    }
    showBadge(waiting.size);
    const fresh = this.#waiting.filter((gate) => home.isLoaded && !this.#known.has(gate.id));
    this.#known = waiting;
    this.#tell(fresh);
    this.#remind();
  }

  /** Tells again what still waits; a gate that someone decided is no longer among them. */
  #remind(): void {
    const now = Date.now();
    const { due, next } = remindersBetween(this.#waiting, this.#looked, now);
    this.#looked = now;
    this.#tell(this.#waiting.filter((gate) => due.includes(gate.id)));
    clearTimeout(this.#timer);
    if (next !== undefined) this.#timer = setTimeout(() => this.#remind(), next - now);
  }

  #tell(gates: readonly GateCard[]): void {
    if (!gates.length || document.visibilityState === "visible") return;
    if (preferences.sound) chime();
    if (this.state !== "on") return;
    if (gates.length > MOST)
      this.#show(MANY, `${plural(gates.length, "decision")} wait for you`, "", "/");
    else for (const gate of gates) this.#tellOne(gate);
  }

  /** Who and what; the call itself and secrets stay on the page. */
  #tellOne(gate: GateCard): void {
    const who = oneLine(gate.people[gate.initiator] ?? gate.initiator, 40);
    const { action } = gate;
    const asked = action && questionOf(action.tool_name, action.category, action.arguments);
    const what = asked ? (asked.code ? `${asked.before} something?` : asked.before) : "Your vote?";
    const risk = action ? `${action.risk_level} risk, ` : "";
    const left = timeLeft(gate.expires_at, Date.now());
    const body = `${oneLine(gate.session_name, 60)}, ${risk}${left}`;
    this.#show(gate.id, `${who}: ${what}`, body, `/g/${gate.id}`);
  }

  #show(tag: string, title: string, body: string, path: string): void {
    const options = { body, tag, silent: true, data: { path } };
    try {
      const notice = new Notification(title, options);
      notice.onclick = () => {
        window.focus();
        location.assign(path);
        notice.close();
      };
      this.#shown.set(tag, notice);
    } catch {
      // Chrome on Android has the constructor and does not let pages use it.
      this.#shown.set(tag, showByWorker(title, options));
    }
  }
}

/** A number on the icon of an installed page. */
function showBadge(count: number): void {
  if (!("setAppBadge" in navigator)) return;
  const done = count ? navigator.setAppBadge(count) : navigator.clearAppBadge();
  // A page that is not installed has no icon to write on.
  done.catch(() => {});
}

function stateNow(): "none" | "off" | "denied" | "on" {
  if (typeof Notification === "undefined") return "none";
  if (Notification.permission === "denied") return "denied";
  const chosen = localStorage.getItem(CHOICE) === "on";
  return Notification.permission === "granted" && chosen ? "on" : "off";
}

export const notices = new Notices();
