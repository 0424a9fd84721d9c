import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";

import { Cancelled, locate, lookup, NotStarted, outcome, run, version } from "../src/program";
import { outOfMemory } from "./documents";

const around = { env: { PATH: "/usr/bin:.:bin::/opt/bin" }, home: "/home/one", trusted: [] as string[], windows: false };

describe("the program", () => {
  it("is looked for in absolute folders of PATH, at home, and in folders that are trusted", () => {
    assert.deepEqual(lookup("", { ...around, trusted: ["/proj"] }), [
      "/usr/bin/firstfault",
      "/opt/bin/firstfault",
      "/home/one/.local/bin/firstfault",
      "/proj/.venv/bin/firstfault",
      "/proj/venv/bin/firstfault",
    ]);
    assert.ok(lookup("", around).every((one) => !one.includes("venv")));
  });

  it("is the one that is set, and no other", () => {
    assert.deepEqual(lookup(" /a/firstfault ", around), ["/a/firstfault"]);
    assert.deepEqual(lookup("~/env/bin/firstfault", around), ["/home/one/env/bin/firstfault"]);
    assert.deepEqual(lookup("firstfault-2", around), ["/usr/bin/firstfault-2", "/opt/bin/firstfault-2"]);
    assert.deepEqual(lookup("./firstfault", around), []);
  });
});

describe("an end", () => {
  const ended = { code: 0, signal: null, stdout: "", stderr: "" };

  it("with a document is a diagnosis", () => {
    const found = outcome({ ...ended, stdout: JSON.stringify(outOfMemory()) });
    assert.equal(found.kind, "diagnosis");
    assert.equal(outcome({ ...ended, code: 3, stdout: JSON.stringify(outOfMemory()) }).kind, "diagnosis");
  });

  it("with its own complaint hands that on", () => {
    assert.deepEqual(outcome({ ...ended, code: 1, stderr: "reads\nfirstfault: /x: no such file\n" }), { kind: "failed", what: "/x: no such file" });
  });

  it("that does not understand the question, or answers another, is another version", () => {
    assert.deepEqual(outcome({ ...ended, code: 2, stderr: "Usage: ...\n\nError: No such option: --quiet\n" }), { kind: "version", what: "No such option: --quiet" });
    assert.equal(outcome({ ...ended, stdout: '{"schema":"firstfault.diagnosis/2"}' }).kind, "version");
    assert.equal(outcome({ ...ended, stdout: "rank 3 failed first" }).kind, "version");
  });

  it("that nobody foresaw says what it can", () => {
    const crash = outcome({ ...ended, code: 1, stderr: "Traceback (most recent call last):\nMemoryError\n" });
    assert.deepEqual(crash, { kind: "failed", what: "firstfault ended with exit status 1: MemoryError" });
    assert.match((outcome({ ...ended, code: null, signal: "SIGKILL" }) as { what: string }).what, /SIGKILL/);
  });
});

describe("a run", () => {
  const home = mkdtempSync(join(tmpdir(), "firstfault-test-"));
  after(() => {
    rmSync(home, { recursive: true });
  });
  const script = (name: string, text: string): string => {
    const path = join(home, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const never = () => new AbortController().signal;

  it("gives what was printed, with what was handed in, away from any folder of logs", async () => {
    const program = script("echoes", 'cat; pwd; echo "$@"; echo told >&2; exit 4');
    const ended = await run({ program, arguments: ["a b", "$(id)"], home, input: "in\n", signal: never() });
    assert.deepEqual(ended, { code: 4, signal: null, stdout: `in\n${home}\na b $(id)\n`, stderr: "told\n" });
  });

  it("survives a program that does not read its input", async () => {
    const program = script("deaf", "exit 0");
    assert.equal((await run({ program, arguments: [], home, input: "x".repeat(4_000_000), signal: never() })).code, 0);
  });

  it("says that a program does not start", async () => {
    await assert.rejects(run({ program: join(home, "none"), arguments: [], home, signal: never() }), NotStarted);
    assert.equal(locate([join(home, "none"), home]), undefined);
  });

  it("is ended with all that it started", async () => {
    const done = join(home, "done");
    const program = script("slow", `(sleep 1; touch '${done}') &\necho begun; wait`);
    const stop = new AbortController();
    const running = run({ program, arguments: [], home, signal: stop.signal });
    await wait(200);
    stop.abort();
    await assert.rejects(running, Cancelled);
    await wait(1200);
    assert.ok(!existsSync(done));
    await assert.rejects(run({ program, arguments: [], home, signal: stop.signal }), Cancelled);
  });

  it("tells the version, where the program does", async () => {
    assert.equal(await version(script("tells", "echo 0.1.0"), home), "0.1.0");
    assert.equal(await version(script("tells-not", "echo unknown"), home), null);
    assert.equal(await version(script("fails", "exit 2"), home), null);
  });
});
