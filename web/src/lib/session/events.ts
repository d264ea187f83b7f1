/** What the small messages say, as one line each: who did what, and why. */

import { list } from "../text/words";
import { type Envelope, type Fields, fieldsOf, textOf, textsOf } from "./envelope";
import type { Happening } from "./items";

export type Told = Pick<Happening, "words" | "detail" | "tone" | "presence"> & { by?: string };

const URGENCY: Record<string, string> = {
  pause: "paused",
  stop: "stopped",
  emergency: "stopped everything of",
};
const ACKNOWLEDGED: Record<string, string> = {
  paused: "has paused",
  stopped: "has stopped",
  acknowledged: "has heard it",
  ignored: "goes on anyway",
};
const ENDED: Record<string, string> = {
  completed: "ended the session as done",
  aborted: "ended the session early",
  timeout: "let the session run out",
};

/** What the server itself puts on the shelf. */
const RULED = /^decision:([\w-]+(?::[\w@.-]+)?)#(snapshot|convergence)$/;
const GRANT = "standing_grant:";

const PRESENCE: Record<string, Told["presence"]> = {
  "session.create": "in",
  "session.join": "in",
  "session.leave": "out",
};

type Teller = (fields: Fields, message: Envelope) => Told | null;

function told(words: string, detail: unknown = "", tone: Told["tone"] = "", by?: string): Told {
  return { words, detail: textOf(detail), tone, presence: "", ...(by === undefined ? {} : { by }) };
}

const TELLERS: Record<string, Teller> = {
  "session.create": (fields) => told("opened the session", fields.name),
  "session.leave": (fields, message) =>
    told("left", fields.reason, "", textOf(fields.participant) || message.sender),
  "session.end": (fields) =>
    told(ENDED[textOf(fields.final_state)] ?? "ended the session", fields.reason, "stop"),
  "session.config_update": (fields) =>
    told(
      `changed the rules: ${list(Object.keys(fieldsOf(fields.changes)).map((name) => name.replaceAll("_", " ")))}`,
      fields.reason,
    ),
  "session.join": (fields, message) => {
    const participant = fieldsOf(fields.participant);
    return told(
      `joined${roles(participant.roles)}`,
      "",
      "",
      textOf(participant.id) || message.sender,
    );
  },
  "participant.role_change": (fields) => {
    const who = textOf(fields.participant);
    const now = textsOf(fields.new_roles);
    return told(now.length ? `made ${who} ${list(now)}` : `removed ${who}`, fields.reason);
  },
  "context.add": (fields, message) => {
    const key = textOf(fields.key);
    const rules = message.sender === "system" ? RULED.exec(key) : null;
    if (rules)
      return told(
        rules[2] === "snapshot"
          ? `The rules decide on ${rules[1]}`
          : `The judgements of ${rules[1]} are compared`,
      );
    if (key.startsWith(GRANT)) return told("gave a standing grant");
    return told(`put ${key} on the shelf`, readers(fields.visible_to));
  },
  "context.update": (fields) => told(`changed ${textOf(fields.key)} on the shelf`, fields.reason),
  "context.remove": (fields) => {
    const key = textOf(fields.key);
    const words = key.startsWith(GRANT) ? "ended a standing grant" : `took ${key} off the shelf`;
    return told(words, fields.reason);
  },
  "secret.share": (fields) =>
    told(`shared the secret ${textOf(fields.key)} with ${list(textsOf(fields.scope))}`),
  "secret.revoke": (fields) => told(`took back the secret ${textOf(fields.key)}`, fields.reason),
  "interrupt.raise": (fields) =>
    told(
      `${URGENCY[textOf(fields.urgency)] ?? "interrupted"} ${textOf(fields.target) || "every agent"}`,
      fields.message,
      "stop",
    ),
  "interrupt.acknowledge": (fields) =>
    told(ACKNOWLEDGED[textOf(fields.action_taken)] ?? "has heard it", fields.ignore_reason),
  "fork.create": (fields) => told(`forked ${textOf(fields.name)}`, fields.reason),
  "merge.propose": (fields) =>
    told(
      `proposes to merge ${textOf(fields.source_fork)} into ${textOf(fields.target_fork) || "main"}`,
      fields.summary,
    ),
  "merge.execute": () => told("merged the fork", "", "good"),
};

function roles(value: unknown): string {
  const names = textsOf(value);
  return names.length ? ` as ${list(names)}` : "";
}

function readers(value: unknown): string {
  const ids = textsOf(value);
  return ids.length ? `for ${list(ids)}` : "";
}

/** The line for a message, or null for one that shows elsewhere or not at all. */
export function describeEvent(message: Envelope): Told | null {
  const teller = TELLERS[message.type];
  const told = teller ? teller(fieldsOf(message.payload), message) : null;
  return told ? { ...told, presence: PRESENCE[message.type] ?? "" } : null;
}
