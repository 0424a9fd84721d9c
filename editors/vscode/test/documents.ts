/** Small documents for the tests. */

export const line = (path: string, at: number, rank: number | null, host: string | null, text = "a line", why = "it says so") => ({
  path, line: at, at: null, text, why, rank, host,
});

/** Rank 3 on node-2 ran out of memory; the others lost it. */
export const outOfMemory = () => ({
  schema: "firstfault.diagnosis/1",
  verdict: "identified",
  failure: { class: "cuda-oom", entry: "pytorch-cuda-oom", title: "CUDA out of memory" },
  initiating: { component: "rank", ranks: [3], hosts: ["node-2"], gpus: ["node-2/1"], aliases: [], at: "2026-05-04T10:11:12.345Z" },
  evidence: [line("node-2/rank3.log", 120, 3, "node-2", "CUDA out of memory"), line("node-1/rank0.log", 80, 0, "node-1", "peer gone")],
  collateral: {
    ranks: [0, 1, 2],
    hosts: ["node-1"],
    groups: [{ what: "lost the connection to a peer", ranks: [0, 1, 2], hosts: ["node-1"], example: line("node-1/rank1.log", 9, 1, "node-1") }],
  },
  confidence: 0.97,
  hypotheses: [{ class: "cuda-oom", entry: null, ranks: [3], hosts: ["node-2"], confidence: 0.97, for: ["it says so"], against: [] }],
  missing_fact: null,
  next_action: "Lower the batch size.",
  job: { ranks: 4, hosts: 2, attempts: 1, sources: 4, lines: 1000 },
  summary: "Rank 3 ran out of memory.",
  why_not: [{ who: "rank 0", why: "it only lost its peer" }],
  also: [],
  attempts: [],
  advice: { fix: ["lower the batch size"], confirm: ["nvidia-smi"], verify: ["it passes step 9"], resume: "step 8", mechanism: "memory", references: ["https://example.org/oom"] },
  coverage: { sources: {}, problems: [{ severity: "notice", kind: "cut", count: 2, detail: "cut lines" }] },
  refusals: ["no clock for node-3"],
  preserve: [{ where: "node-2", command: "nvidia-smi -q > state.txt", why: "gone after a restart" }],
});
