import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DiffLine, linesOf } from "../text/diff";
import { type Call, callOf, commandOf, questionOf, questionText, stepOf } from "./call";

const ask = (tool: string, category: string, args: Record<string, unknown>) =>
  questionText(questionOf(tool, category, args));

function linesIn({ change }: Call): DiffLine[] {
  return change ? linesOf(change) : [];
}

describe("the question of a gate", () => {
  it("is put together from the call", () => {
    expect(ask("shell", "file_delete", { command: "rm -r var/cache/invoices/2024" })).toBe(
      "Delete var/cache/invoices/2024?",
    );
    expect(
      ask("shell", "database", { command: "uv run alembic -x env=staging upgrade 4c1f9a2e07b3" }),
    ).toBe("Migrate the staging database?");
    expect(ask("shell", "shell_execute", { argv: ["make", "publish"] })).toBe("Run make publish?");
    expect(ask("file_write", "file_write", { path: "a.py", content: "x" })).toBe("Write a.py?");
    expect(ask("edit", "file_write", { path: "a.py", old_string: "a", new_string: "b" })).toBe(
      "Change a.py?",
    );
    expect(ask("shell", "shell_execute", { command: "git push origin fix/login" })).toBe(
      "Push fix/login to origin?",
    );
    expect(ask("deploy_it", "deploy", { a: 1 })).toBe("Run deploy_it?");
  });
  it("never has the agent's description in it", () => {
    expect(
      ask("shell", "shell_execute", { command: "true", description: "Harmless. Approve." }),
    ).toBe("Run true?");
  });
});

describe("the exact call", () => {
  it("shows a command whole, and arguments that disagree as they are", () => {
    expect(callOf("shell", { argv: ["echo", "a b"] }).text).toBe("echo 'a b'");
    expect(commandOf({ argv: ["ls"], command: "rm -rf /" })).toBeNull();
    expect(callOf("shell", { argv: ["ls"], command: "rm -rf /" }).text).toContain("rm -rf /");
  });
  it("leaves nothing of the arguments out", () => {
    const json = fc.dictionary(
      fc.constantFrom("path", "content", "command", "argv", "patch", "x", "old", "new", "tree"),
      fc.oneof(
        fc.constantFrom("q1", "q2\nq3", "@@ -1 +1 @@\n+q4"),
        fc.array(fc.constantFrom("q5", "q6")),
        fc.integer(),
      ),
    );
    fc.assert(
      fc.property(json, (args) => {
        const call = callOf("tool", args);
        const shown =
          call.text +
          linesIn(call)
            .map((line) => line.sign + line.words.map((word) => word.text).join(""))
            .join("\n") +
          (call.change?.path ?? "");
        for (const word of JSON.stringify(args).match(/q\d/g) ?? []) expect(shown).toContain(word);
      }),
    );
  });
  it("shows writes as a diff", () => {
    expect(
      linesIn(callOf("w", { path: "a", content: "x\ny\n" }))
        .map((line) => line.sign)
        .join(""),
    ).toBe("++");
  });
});

describe("a step", () => {
  it("has verb and object", () => {
    expect(stepOf("read", "file_read", { path: "a.py" })).toEqual({
      done: "Read",
      doing: "Reads",
      object: "a.py",
    });
    expect(stepOf("shell", "shell_execute", { command: "pytest -q" }).done).toBe("Ran");
    expect(stepOf("odd", "external_api", { a: 1 }).object).toBe('odd {"a":1}');
  });
});

it("asks about the command of a step that carries out a decision, and shows which decision", () => {
  const args = { command: "make test", decision: { batch: "release", item: "TESTS", step: "s" } };
  expect(questionText(questionOf("shell", "shell_execute", args))).toBe("Run make test?");
  expect(callOf("shell", args).text).toContain('"batch": "release"');
});
