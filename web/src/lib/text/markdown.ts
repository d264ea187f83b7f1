/** Markdown as a tree of our own; the lexer's tokens are read, its HTML never is. */

import { Lexer, type Token, type Tokens } from "marked";

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "del"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] }
  | { kind: "break" };

export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; depth: number; children: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Item[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

export interface Item {
  task: boolean | null;
  children: Block[];
}

const MAX_DEPTH = 12;
/** A block that is longer than this is shown as plain text: the lexer is not linear in every input. */
const MAX_BLOCK = 64 << 10;

export function parseBlocks(text: string): Block[] {
  return tokensOf(text).flatMap((token) => block(token, 0));
}

function tokensOf(text: string): Token[] {
  if (text.length > MAX_BLOCK) return [{ type: "text", raw: text, text } as Token];
  return new Lexer({ gfm: true, breaks: false }).lex(text);
}

function block(token: Token, depth: number): Block[] {
  if (depth > MAX_DEPTH) return [{ kind: "paragraph", children: plain(token.raw) }];
  switch (token.type) {
    case "space":
    case "def":
      return token.type === "def" ? [{ kind: "paragraph", children: plain(token.raw.trim()) }] : [];
    case "paragraph":
    case "text":
      return [
        {
          kind: "paragraph",
          children: inlines((token as Tokens.Paragraph).tokens, token.raw, depth),
        },
      ];
    case "heading":
      return [
        {
          kind: "heading",
          depth: (token as Tokens.Heading).depth,
          children: inlines((token as Tokens.Heading).tokens, token.raw, depth),
        },
      ];
    case "code":
      return [
        {
          kind: "code",
          language: ((token as Tokens.Code).lang ?? "").split(/\s/)[0]?.slice(0, 24) ?? "",
          text: (token as Tokens.Code).text,
        },
      ];
    case "blockquote":
      return [
        {
          kind: "quote",
          children: ((token as Tokens.Blockquote).tokens ?? []).flatMap((each) =>
            block(each, depth + 1),
          ),
        },
      ];
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item) => ({
        task: item.task ? Boolean(item.checked) : null,
        children: item.tokens
          .filter((each) => each.type !== "checkbox")
          .flatMap((each) => block(each, depth + 1)),
      }));
      return [{ kind: "list", ordered: list.ordered, start: Number(list.start) || 1, items }];
    }
    case "table": {
      const table = token as Tokens.Table;
      const cell = (each: Tokens.TableCell) => inlines(each.tokens, each.text, depth);
      return [
        {
          kind: "table",
          head: table.header.map(cell),
          rows: table.rows.map((row) => row.map(cell)),
        },
      ];
    }
    case "hr":
      return [{ kind: "rule" }];
    default:
      // HTML and whatever a later lexer invents: its letters.
      return [{ kind: "paragraph", children: plain(token.raw.trim()) }];
  }
}

function plain(text: string): Inline[] {
  return [{ kind: "text", text }];
}

function inlines(tokens: Token[] | undefined, raw: string, depth: number): Inline[] {
  if (!tokens || depth > MAX_DEPTH) return plain(raw.trim());
  return tokens.map((token) => inline(token, depth + 1));
}

function inline(token: Token, depth: number): Inline {
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return {
        kind: token.type,
        children: inlines((token as Tokens.Strong).tokens, token.raw, depth),
      };
    case "codespan":
      return { kind: "code", text: (token as Tokens.Codespan).text };
    case "link":
      return {
        kind: "link",
        href: (token as Tokens.Link).href,
        children: inlines((token as Tokens.Link).tokens, token.raw, depth),
      };
    case "br":
      return { kind: "break" };
    case "escape":
      return { kind: "text", text: (token as Tokens.Escape).text };
    case "text":
      return { kind: "text", text: (token as Tokens.Text).text };
    default:
      // Images and HTML too: nothing is loaded, nothing is interpreted.
      return { kind: "text", text: token.raw };
  }
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n?/;

/** Markdown that grows at its end: a block that is finished keeps its object for ever. */
export class GrowingMarkdown {
  /** Finished blocks, each with its own key; only `tail` changes. */
  readonly finished: Block[] = [];
  tail: Block[] = [];
  #rest = "";
  #read = 0;

  /** All of the text so far; it must begin with what was given before. */
  update(text: string, ended = false): void {
    this.#rest += text.slice(this.#read);
    this.#read = text.length;
    this.#parse(ended);
  }

  append(more: string, ended = false): void {
    this.#rest += more;
    this.#read += more.length;
    this.#parse(ended);
  }

  get blocks(): Block[] {
    return [...this.finished, ...this.tail];
  }

  #parse(ended: boolean): void {
    const fence = FENCE.exec(this.#rest);
    const mark = fence?.[1] ?? "";
    if (fence && mark && !(mark.startsWith("`") && (fence[2] ?? "").includes("`"))) {
      const close = new RegExp(
        `\\n {0,3}${mark[0] === "`" ? "`" : "~"}{${mark.length},}[ \\t]*(?:\\n|$)`,
      );
      const end = close.exec(this.#rest);
      const whole = end && (end[0].endsWith("\n") || ended);
      if (!whole && !ended) {
        // An open fence is code to its end; lexing it again for each chunk would cost its length each time.
        const body = this.#rest.slice(fence[0].length);
        this.tail = [
          {
            kind: "code",
            language: (fence[2] ?? "").trim().split(/\s/)[0]?.slice(0, 24) ?? "",
            text: end ? body.slice(0, end.index - fence[0].length) : body,
          },
        ];
        return;
      }
    }
    const tokens = tokensOf(this.#rest);
    let keep = tokens.length;
    if (!ended) {
      keep = tokens.length - 1;
      while (keep > 0 && tokens[keep]?.type === "space") keep--;
      // The beginning of a line may still turn out to belong to the block before it.
      if (keep > 0 && !tokens[keep]?.raw.includes("\n"))
        for (keep--; keep > 0 && tokens[keep]?.type === "space"; ) keep--;
    }
    for (const token of tokens.slice(0, keep)) {
      this.finished.push(...block(token, 0));
      this.#rest = this.#rest.slice(token.raw.length);
    }
    this.tail = tokens.slice(keep).flatMap((token) => block(token, 0));
    if (ended) this.#rest = "";
  }
}
