import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { find, shown } from "../src/places";

const folder = (path: string) => ({ path, folder: true });
const file = (path: string) => ({ path, folder: false });
const all = () => true;

describe("places", () => {
  it("lie behind the folder that was given", () => {
    assert.deepEqual(find("node-1/rank0.log", [folder("/logs")], all), { kind: "file", path: "/logs/node-1/rank0.log" });
  });

  it("are the file that was given, by its name", () => {
    assert.deepEqual(find("rank0.log", [file("/a/rank0.log"), file("/b/rank1.log")], all), { kind: "file", path: "/a/rank0.log" });
  });

  it("are told apart where names clash, by the given path in front", () => {
    const roots = [folder("/logs/a"), folder("/logs/b")];
    assert.deepEqual(find("/logs/b/agent.log", roots, all), { kind: "file", path: "/logs/b/agent.log" });
    assert.deepEqual(find("/b/x.log", [file("/a/x.log"), file("/b/x.log")], all), { kind: "file", path: "/b/x.log" });
  });

  it("never lead out of what was given", () => {
    for (const path of ["../../etc/passwd", "/etc/passwd", "a/../../etc/passwd", "../logs-of-others/x"]) {
      assert.deepEqual(find(path, [folder("/home/logs")], all), { kind: "unknown" }, path);
    }
  });

  it("say what is packed", () => {
    assert.deepEqual(find("run.tar.gz!/a/b.log", [folder("/logs")], all), { kind: "packed", path: "/logs/run.tar.gz" });
    assert.deepEqual(find("a/b.log", [file("/logs/run.tar.zst")], all), { kind: "packed", path: "/logs/run.tar.zst" });
    assert.deepEqual(find("a.log.gz", [folder("/logs")], all), { kind: "gzip", path: "/logs/a.log.gz" });
    assert.deepEqual(find("a.log.zst", [folder("/logs")], all), { kind: "packed", path: "/logs/a.log.zst" });
  });

  it("are unknown once they are gone", () => {
    assert.deepEqual(find("a.log", [folder("/logs")], () => false), { kind: "unknown" });
  });
});

describe("a path that is shown", () => {
  it("is cut to what tells apart", () => {
    const roots = [folder("/data/run/a"), folder("/data/run/b/c")];
    assert.equal(shown("/data/run/b/c/x.log", roots), "b/c/x.log");
    assert.equal(shown("/data/other/x.log", roots), "/data/other/x.log");
    assert.equal(shown("x.log", roots), "x.log");
    assert.equal(shown("/data/run/a/x.log", [folder("/data/run/a")]), "/data/run/a/x.log");
  });
});
