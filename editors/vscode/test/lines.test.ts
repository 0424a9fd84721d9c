import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { editorLines } from "../src/lines";

/** The line of the editor, which splits as VS Code does, at which the wanted line is found. */
function shown(text: string, line: number, sought: string): string | undefined {
  const wanted = { line, text: sought };
  const at = editorLines(Buffer.from(text), [wanted]).get(wanted) ?? -1;
  return text.split(/\r\n|\n|\r/)[at];
}

describe("lines of the editor", () => {
  it("are those of the program where only newlines end them", () => {
    assert.equal(shown("one\ntwo\nthree", 3, "three"), "three");
    assert.equal(shown("one\r\ntwo\r\nthree\r\n", 2, "two"), "two");
  });

  it("come after every piece that a progress bar cut", () => {
    assert.equal(shown("0 %\r50 %\r100 %\nRuntimeError: boom\n", 2, "RuntimeError: boom"), "RuntimeError: boom");
  });

  it("are the piece with the text, else the last one that says something", () => {
    assert.equal(shown("ok\n 0 %\r CUDA error\r 50 %\n", 2, "CUDA error"), " CUDA error");
    assert.equal(shown("ok\n 0 %\r 50 %\r\r\n", 2, "not there"), " 50 %");
  });

  it("stay within reason beyond the end of the file", () => {
    assert.equal(editorLines(Buffer.from("a\nb"), [{ line: 9, text: "" }]).values().next().value, 8);
  });

  it("are found for many lines at once, in any order", () => {
    const text = Array.from({ length: 5000 }, (_, at) => `line ${at + 1}\rend ${at + 1}`).join("\n");
    const wanted = [4000, 3, 5000].map((line) => ({ line, text: `end ${line}` }));
    const found = editorLines(Buffer.from(text), wanted);
    assert.deepEqual(wanted.map((one) => found.get(one)), [7999, 5, 9999]);
  });
});
