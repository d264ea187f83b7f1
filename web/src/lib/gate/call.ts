/** What a call is, in words made by the page from tool, category and arguments alone. */

import type { FileChange } from "../text/diff";
import { oneLine } from "../text/spell";

export type Arguments = Record<string, unknown>;

/** A call as it is shown: the exact text, and the change of a file if it is one. */
export interface Call {
  text: string;
  command: boolean;
  change: FileChange | null;
}

const PATHS = ["path", "file_path", "filepath", "filename", "file"];
const CONTENTS = ["content", "contents", "file_text", "new_content", "text"];
const PAIRS = [
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["old_text", "new_text"],
  ["old", "new"],
  ["search", "replace"],
] as const;
const PATCHES = ["patch", "diff", "input"];
const LINES = ["command", "full_command"];

function textIn(args: Arguments, names: readonly string[]): { name: string; text: string } | null {
  const present = names.filter((name) => name in args);
  const [name] = present;
  if (present.length !== 1 || name === undefined || typeof args[name] !== "string") return null;
  return { name, text: args[name] };
}

function wordsOf(args: Arguments): string[] | null {
  const { argv } = args;
  return Array.isArray(argv) && argv.every((word) => typeof word === "string") ? argv : null;
}

/** They say what the call is about; they stand below the command. */
const BESIDE = ["tree", "description", "timeout", "decision"];
const SAFE_WORD = /^[\w@%+=:,./-]+$/;
export function quoted(word: string): string {
  return SAFE_WORD.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** The command line, if the arguments are one and nothing else, and all their forms agree. */
export function commandOf(args: Arguments): string | null {
  const others = Object.keys(args).filter((name) => name !== "argv" && !LINES.includes(name));
  const words = wordsOf(args);
  const line = words ? words.map(quoted).join(" ") : null;
  const named = LINES.flatMap((name) => (name in args ? [args[name]] : []));
  if (!named.every((each) => typeof each === "string")) return null;
  if (line !== null && named.some((each) => each !== line)) return null;
  if (named.length === 2 && named[0] !== named[1]) return null;
  if (others.some((name) => !BESIDE.includes(name))) return null;
  return line ?? (named[0] as string | undefined) ?? null;
}

/** Everything that would run; nothing of the arguments is left out. */
export function callOf(toolName: string, args: Arguments): Call {
  const command = commandOf(args);
  if (command !== null) {
    const rest = without(args, ["argv", ...LINES]);
    return { text: rest ? `${command}\nwith ${rest}` : command, command: true, change: null };
  }
  const change = changeOf(args);
  if (change) return change;
  return { text: `${toolName} ${JSON.stringify(args, null, 2)}`, command: false, change: null };
}

function without(args: Arguments, used: readonly string[]): string {
  const rest = Object.fromEntries(Object.entries(args).filter(([name]) => !used.includes(name)));
  return Object.keys(rest).length ? JSON.stringify(rest, null, 2) : "";
}

function withRest(head: string, args: Arguments, used: readonly string[]): string {
  const rest = without(args, used);
  return rest ? `${head}\nwith ${rest}` : head;
}

function changeOf(args: Arguments): Call | null {
  const path = textIn(args, PATHS);
  if (path) {
    for (const [before, after] of PAIRS) {
      const [old, fresh] = [args[before], args[after]];
      if (typeof old === "string" && typeof fresh === "string") {
        const head = withRest(`edit ${JSON.stringify(path.text)}`, args, [
          path.name,
          before,
          after,
        ]);
        return {
          text: head,
          command: false,
          change: { path: path.text, before: old, after: fresh },
        };
      }
    }
    const content = textIn(args, CONTENTS);
    if (content) {
      const head = withRest(
        `write ${JSON.stringify(path.text)}; what it held before is replaced`,
        args,
        [path.name, content.name],
      );
      return {
        text: head,
        command: false,
        change: { path: path.text, before: "", after: content.text },
      };
    }
  }
  const patch = textIn(args, PATCHES);
  if (patch && /^(---|\*\*\*|@@|diff )/m.test(patch.text)) {
    const used = [patch.name, ...(path ? [path.name] : [])];
    return {
      text: withRest("apply a patch", args, used),
      command: false,
      change: { path: path?.text ?? "patch", patch: patch.text },
    };
  }
  return null;
}

/** Where a command says it acts, such as `env=staging`; only if it is written there. */
function environmentIn(line: string): string {
  const found =
    /(?:^|\s)(?:-x\s+)?(?:--?)?(?:env|environment|ENV|RAILS_ENV|NODE_ENV)[= ]([\w-]{2,20})(?=\s|$)/.exec(
      line,
    );
  return found?.[1] ?? "";
}

const MIGRATIONS =
  /\b(alembic\b.*\bupgrade|manage\.py migrate|prisma migrate|rails db:migrate|flyway migrate|knex migrate)\b/;

/** One question with its object; `code` is set in plain letters between the words. */
export interface Question {
  before: string;
  code: string;
  after: string;
  /** The same as a yes: "Yes, migrate staging". */
  yes: string;
}

function question(verb: string, code: string, after = ""): Question {
  return { before: verb, code, after: `${after}?`, yes: `Yes, ${verb.toLowerCase()}` };
}

export function questionOf(toolName: string, category: string, args: Arguments): Question {
  const line = commandOf(args);
  const path = textIn(args, PATHS);
  if (line !== null) {
    const short = oneLine(line, 64);
    if (MIGRATIONS.test(line)) {
      const where = environmentIn(line);
      return {
        before: `Migrate the ${where ? `${where} ` : ""}database?`,
        code: "",
        after: "",
        yes: `Yes, migrate${where ? ` ${where}` : ""}`,
      };
    }
    const push = /^git push (?:-\S+ )*(\S+)(?: (\S+))?$/.exec(line);
    if (push)
      return {
        before: "Push",
        code: push[2] ?? "",
        after: `${push[2] ? " " : ""}to ${oneLine(push[1] ?? "", 40)}?`,
        yes: "Yes, push",
      };
    const remove = /^rm(?: -\S+)* (\S.*)$/.exec(line);
    if (remove) return question("Delete", oneLine(remove[1] ?? "", 64));
    if (/^git commit\b/.test(line))
      return { before: "Commit this?", code: "", after: "", yes: "Yes, commit" };
    return question("Run", short);
  }
  if (path) {
    const object = oneLine(path.text, 64);
    if (category === "file_delete") return question("Delete", object);
    if (category === "file_read") return question("Read", object);
    return question(callOf(toolName, args).text.startsWith("write ") ? "Write" : "Change", object);
  }
  if (textIn(args, PATCHES))
    return { before: "Apply a patch?", code: "", after: "", yes: "Yes, apply it" };
  return question("Run", oneLine(toolName, 48));
}

/** The question as one string, for titles and notices. */
export function questionText(asked: Question): string {
  return asked.code
    ? `${asked.before} ${asked.code}${asked.after}`
    : `${asked.before}${asked.after}`;
}

const VERBS: Record<string, [string, string]> = {
  file_read: ["Read", "Reads"],
  file_write: ["Edited", "Edits"],
  file_delete: ["Deleted", "Deletes"],
};

/** What a step did, as verb and object. */
export function stepOf(
  toolName: string,
  category: string,
  args: Arguments,
): { done: string; doing: string; object: string } {
  const line = commandOf(args);
  if (line !== null) return { done: "Ran", doing: "Runs", object: line };
  const path = textIn(args, PATHS);
  const verbs = VERBS[category];
  if (path && verbs) return { done: verbs[0], doing: verbs[1], object: path.text };
  const whole = JSON.stringify(args);
  return {
    done: "Called",
    doing: "Calls",
    object: `${toolName} ${whole === "{}" ? "" : whole}`.trim(),
  };
}
