import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { endedByHand, looksLikeJob, plain, Tail } from "../src/terminalText";

describe("the text of a terminal", () => {
  it("has no escape sequences", () => {
    assert.equal(plain("\x1b]633;C\x07\x1b[1;31merror\x1b[0m: \x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\\r\n\x1b(B\x1b[?25hend"), "error: link\nend");
  });

  it("has one line for each that the editor shows", () => {
    assert.equal(plain("0 %\r50 %\r100 %\r\ndone\r\r\n"), "0 %\n50 %\n100 %\ndone\n");
  });

  it("loses no line to a sequence that does not end", () => {
    assert.equal(plain("a\x1b]0;title\nRuntimeError\n\x1bP\nb\x1b"), "a\nRuntimeError\n\nb");
  });

  it("is read in linear time, whatever a program prints", () => {
    for (const unit of ["\x1b[", "\x1b]", "\x1b[0;", "\r", "\x1b"]) {
      const text = unit.repeat(400_000);
      assert.ok(plain(text).length <= text.length);
    }
  });

  it("is kept from its end, in whole lines, and what is lost is counted", () => {
    const tail = new Tail(12);
    for (const chunk of ["one\n", "two\n", "three\n", "four\n"]) tail.add(chunk);
    assert.deepEqual(tail.read(), { text: "three\nfour\n", lost: 8 });
    const small = new Tail(100);
    small.add("x\r\n");
    assert.deepEqual(small.read(), { text: "x\n", lost: 0 });
  });
});

describe("an offer", () => {
  it("is made for what launches jobs, and for what reads like one", () => {
    for (const command of ["torchrun --nproc 8 train.py", "srun -N2 ./run.sh", "time mpirun -n 4 x", "python3.11 train.py", "cd a; /opt/env/bin/accelerate launch t.py"]) {
      assert.ok(looksLikeJob(command, ""), command);
    }
    assert.ok(looksLikeJob("./run.sh", "[rank3]: Traceback (most recent call last):"));
    assert.ok(looksLikeJob("make train", "NCCL WARN Call to connect failed"));
  });

  it("is not made for other commands", () => {
    assert.ok(!looksLikeJob("grep -r python3x src", ""));
    assert.ok(!looksLikeJob("ls /missing", "ls: cannot access '/missing': No such file or directory"));
  });

  it("is not made for what ended well or by hand", () => {
    assert.deepEqual([0, 130, 131, undefined, 1, 137].map(endedByHand), [true, true, true, true, false, false]);
  });
});
