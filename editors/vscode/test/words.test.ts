import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode } from "../src/document";
import { brief, headline, ranges, where, who } from "../src/words";
import { outOfMemory } from "./documents";

describe("words", () => {
  it("fold ranks", () => {
    assert.equal(ranges([7, 0, 1, 2, 2, 5, 6]), "0-2, 5-7");
    assert.equal(ranges([3, 4]), "3, 4");
    assert.equal(ranges([]), "");
    assert.match(ranges(Array.from({ length: 100 }, (_, at) => at * 2)), /^0, 2, .* and 76 more$/);
  });

  it("name a place, also one that is no rank", () => {
    const place = { component: "rank", ranks: [4, 5, 6], hosts: ["n2"], gpus: [], at: null };
    assert.equal(where(place), "ranks 4-6 on host n2");
    assert.equal(where({ ...place, component: "launcher", ranks: [], hosts: ["n1"] }), "the launcher on host n1");
    assert.equal(where({ ...place, component: "host", ranks: [], hosts: ["n1"] }), "host n1");
    assert.equal(where({ ...place, component: "scheduler", ranks: [], hosts: [] }), "the scheduler");
    assert.equal(where({ ...place, component: "job", ranks: [], hosts: [] }), "the whole job");
    assert.equal(who([], []), "");
  });

  it("accuse nobody in the headline where the logs do not", () => {
    const open = { ...outOfMemory(), verdict: "undetermined" };
    assert.equal(headline(decode(outOfMemory())), "Failed first: rank 3 on host node-2");
    assert.doesNotMatch(headline(decode(open)), /rank|node/);
    assert.match(headline(decode({ ...open, verdict: "no-failure" })), /completed/);
  });

  it("make a summary to pass on", () => {
    const lines = brief(decode(outOfMemory())).split("\n");
    assert.equal(lines[0], "Failed first: rank 3 on host node-2 (confidence 97 %)");
    assert.ok(lines.includes("evidence: node-2/rank3.log:120 (it says so): CUDA out of memory"));
  });
});
