import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode } from "../src/document";
import { marks } from "../src/marks";
import { line, outOfMemory } from "./documents";

const kinds = (document: object) => marks(decode(document)).map(({ evidence, kind }) => `${evidence.path}:${evidence.line} ${kind}`);

describe("marks", () => {
  it("keep the rank that began apart from those who followed", () => {
    assert.deepEqual(kinds(outOfMemory()), [
      "node-2/rank3.log:120 initiating",
      "node-1/rank0.log:80 collateral",
      "node-1/rank1.log:9 collateral",
    ]);
  });

  it("take a line of the host that began, without a rank, for its own", () => {
    const document = { ...outOfMemory(), evidence: [line("kernel.log", 4, null, "node-2"), line("other.log", 5, null, "node-1")] };
    assert.deepEqual(kinds(document).slice(0, 2), ["kernel.log:4 initiating", "other.log:5 collateral"]);
  });

  it("accuse nobody where the cause is common to all", () => {
    const document = {
      ...outOfMemory(),
      initiating: { component: "job", ranks: [], hosts: [], gpus: [], at: null },
      evidence: [line("a.log", 1, 0, "node-1"), line("b.log", 1, 1, "node-2")],
    };
    assert.deepEqual(kinds(document).slice(0, 2), ["a.log:1 initiating", "b.log:1 initiating"]);
  });

  it("accuse nobody where the verdict is open, nor where all went well", () => {
    assert.ok(kinds({ ...outOfMemory(), verdict: "undetermined" }).every((one) => !one.endsWith("initiating")));
    assert.equal(kinds({ ...outOfMemory(), verdict: "no-failure" })[0], "node-2/rank3.log:120 proof");
  });

  it("name each line once, as what it is first", () => {
    const document = outOfMemory();
    document.evidence.push(line("node-2/rank3.log", 120, 0, "node-1"));
    assert.equal(kinds(document).filter((one) => one.startsWith("node-2/rank3.log:120")).length, 1);
  });
});
