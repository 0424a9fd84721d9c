import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

import { decode, DocumentError, parse } from "../src/document";
import { outOfMemory } from "./documents";

type Schema = Readonly<Record<string, unknown>>;

/** The schema that the program ships, two folders up. */
const schema = JSON.parse(
  readFileSync(join("..", "..", "report", "firstfault", "report", "diagnosis.schema.json"), "utf8"),
) as Schema;

/** Whether the schema knows a key such as `evidence.path`; lists are walked through. */
function known(path: readonly string[], within: Schema): boolean {
  const reference = within["$ref"];
  if (typeof reference === "string") {
    return known(path, (schema["$defs"] as Record<string, Schema>)[reference.split("/").at(-1) ?? ""] ?? {});
  }
  const choices = (within["anyOf"] ?? within["oneOf"]) as Schema[] | undefined;
  if (choices?.some((one) => known(path, one))) return true;
  if (within["items"] !== undefined) return known(path, within["items"] as Schema);
  const [key, ...rest] = path;
  if (key === undefined) return true;
  const next = (within["properties"] as Record<string, Schema> | undefined)?.[key];
  return next !== undefined && known(rest, next);
}

/** The value, with a note of each key that is read. */
function watched<T>(value: T, read: Set<string>, path = ""): T {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, key) {
      const inner = Reflect.get(target, key) as unknown;
      if (Array.isArray(target)) return watched(inner, read, path);
      if (typeof key !== "string") return inner;
      const name = path === "" ? key : `${path}.${key}`;
      read.add(name);
      return watched(inner, read, name);
    },
  });
}

describe("the document", () => {
  it("is read with its ranks, lines and advice", () => {
    const diagnosis = decode(outOfMemory());
    assert.equal(diagnosis.verdict, "identified");
    assert.deepEqual(diagnosis.initiating.ranks, [3]);
    assert.deepEqual(diagnosis.evidence.map(({ path, line }) => `${path}:${line}`), ["node-2/rank3.log:120", "node-1/rank0.log:80"]);
    assert.equal(diagnosis.collateral.groups[0]?.example?.line, 9);
    assert.deepEqual(diagnosis.advice.confirm, ["nvidia-smi"]);
  });

  it("asks for no key that the schema does not have", () => {
    const read = new Set<string>();
    const full = outOfMemory();
    const attempt = { ...full, attempt: 0 };
    decode(watched({ ...full, also: [full], attempts: [attempt] }, read));
    assert.ok(read.size > 60);
    assert.deepEqual([...read].filter((one) => !known(one.split("."), schema)), []);
  });

  it("survives keys that are missing or of another type", () => {
    const diagnosis = decode({ schema: "firstfault.diagnosis/1", verdict: "undetermined", evidence: [7, { path: "a" }, null], collateral: [], confidence: "high" });
    assert.deepEqual(diagnosis.evidence, []);
    assert.equal(diagnosis.confidence, null);
    assert.deepEqual(diagnosis.collateral.groups, []);
  });

  it("is refused with a reason where it is of another kind or version", () => {
    assert.throws(() => parse("Traceback"), new DocumentError("the program printed something that is not JSON"));
    assert.throws(() => parse('{"schema": "firstfault.diagnosis/2"}'), /firstfault\.diagnosis\/2; this extension reads firstfault\.diagnosis\/1/);
    assert.throws(() => parse("[]"), /not a diagnosis/);
    assert.throws(() => parse('{"schema": "firstfault.diagnosis/1", "verdict": "guilty"}'), /no verdict/);
  });
});
