/**
 * The document `firstfault.diagnosis/1`, read from what the program printed. Keys that are missing or of another type
 * become empty, unknown keys are ignored; only the name and version of the document and the verdict must be there.
 */

export type Verdict = "identified" | "undetermined" | "no-failure";

export interface Evidence {
  readonly path: string;
  /** 1-based; counts `\n` only. */
  readonly line: number;
  readonly at: string | null;
  readonly text: string;
  readonly why: string;
  readonly rank: number | null;
  readonly host: string | null;
}

export interface Failure {
  readonly class: string | null;
  readonly entry: string | null;
  readonly title: string | null;
}

export interface Place {
  readonly component: string | null;
  readonly ranks: readonly number[];
  readonly hosts: readonly string[];
  readonly gpus: readonly string[];
  readonly at: string | null;
}

export interface Group {
  readonly what: string;
  readonly ranks: readonly number[];
  readonly hosts: readonly string[];
  readonly example: Evidence | null;
}

export interface Hypothesis {
  readonly class: string;
  readonly ranks: readonly number[];
  readonly hosts: readonly string[];
  readonly confidence: number | null;
  readonly for: readonly string[];
  readonly against: readonly string[];
}

export interface Also {
  readonly failure: Failure;
  readonly initiating: Place;
  readonly evidence: readonly Evidence[];
}

export interface Attempt extends Also {
  readonly attempt: number;
  readonly verdict: string;
}

export interface Diagnosis {
  readonly verdict: Verdict;
  readonly summary: string;
  readonly failure: Failure;
  readonly initiating: Place;
  readonly evidence: readonly Evidence[];
  readonly collateral: {
    readonly ranks: readonly number[];
    readonly hosts: readonly string[];
    readonly groups: readonly Group[];
  };
  readonly confidence: number | null;
  readonly hypotheses: readonly Hypothesis[];
  readonly missingFact: string | null;
  readonly nextAction: string;
  readonly job: {
    readonly ranks: number | null;
    readonly hosts: number | null;
    readonly attempts: number | null;
    readonly sources: number | null;
    readonly lines: number | null;
  };
  readonly whyNot: readonly { readonly who: string; readonly why: string }[];
  readonly also: readonly Also[];
  readonly attempts: readonly Attempt[];
  readonly advice: {
    readonly fix: readonly string[];
    readonly confirm: readonly string[];
    readonly verify: readonly string[];
    readonly resume: string | null;
    readonly mechanism: string | null;
    readonly references: readonly string[];
  };
  readonly preserve: readonly { readonly where: string; readonly command: string; readonly why: string }[];
  readonly problems: readonly { readonly severity: string; readonly count: number | null; readonly detail: string }[];
  readonly refusals: readonly string[];
}

/** Says what is wrong with the document, in words that can be shown. */
export class DocumentError extends Error {}

const SCHEMA = "firstfault.diagnosis/1";
const VERDICTS: readonly Verdict[] = ["identified", "undetermined", "no-failure"];

type Keys = Readonly<Record<string, unknown>>;

const keys = (value: unknown): Keys =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Keys) : {};
const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const texts = (value: unknown): string[] => list(value).filter((one) => typeof one === "string");
const numbers = (value: unknown): number[] => list(value).filter((one) => typeof one === "number");

function evidence(value: unknown): Evidence | null {
  const one = keys(value);
  const path = text(one["path"]);
  const line = number(one["line"]);
  if (path === null || line === null) return null;
  return {
    path,
    line: Math.max(1, Math.trunc(line)),
    at: text(one["at"]),
    text: text(one["text"]) ?? "",
    why: text(one["why"]) ?? "",
    rank: number(one["rank"]),
    host: text(one["host"]),
  };
}

const evidences = (value: unknown): Evidence[] =>
  list(value)
    .map(evidence)
    .filter((one) => one !== null);

function failure(value: unknown): Failure {
  const one = keys(value);
  return { class: text(one["class"]), entry: text(one["entry"]), title: text(one["title"]) };
}

function place(value: unknown): Place {
  const one = keys(value);
  return {
    component: text(one["component"]),
    ranks: numbers(one["ranks"]),
    hosts: texts(one["hosts"]),
    gpus: texts(one["gpus"]),
    at: text(one["at"]),
  };
}

function group(value: unknown): Group {
  const one = keys(value);
  return {
    what: text(one["what"]) ?? "",
    ranks: numbers(one["ranks"]),
    hosts: texts(one["hosts"]),
    example: evidence(one["example"]),
  };
}

function hypothesis(value: unknown): Hypothesis {
  const one = keys(value);
  return {
    class: text(one["class"]) ?? "",
    ranks: numbers(one["ranks"]),
    hosts: texts(one["hosts"]),
    confidence: number(one["confidence"]),
    for: texts(one["for"]),
    against: texts(one["against"]),
  };
}

function also(value: unknown): Also {
  const one = keys(value);
  return {
    failure: failure(one["failure"]),
    initiating: place(one["initiating"]),
    evidence: evidences(one["evidence"]),
  };
}

/** The diagnosis in a value parsed from JSON. */
export function decode(value: unknown): Diagnosis {
  const top = keys(value);
  const schema = text(top["schema"]);
  if (schema !== SCHEMA) {
    throw new DocumentError(
      schema === null
        ? "the program printed JSON that is not a diagnosis"
        : `the program prints documents of the kind ${schema}; this extension reads ${SCHEMA}`,
    );
  }
  const verdict = VERDICTS.find((one) => one === top["verdict"]);
  if (verdict === undefined) throw new DocumentError("the document has no verdict that this extension knows");
  const collateral = keys(top["collateral"]);
  const job = keys(top["job"]);
  const advice = keys(top["advice"]);
  return {
    verdict,
    summary: text(top["summary"]) ?? "",
    failure: failure(top["failure"]),
    initiating: place(top["initiating"]),
    evidence: evidences(top["evidence"]),
    collateral: {
      ranks: numbers(collateral["ranks"]),
      hosts: texts(collateral["hosts"]),
      groups: list(collateral["groups"]).map(group),
    },
    confidence: number(top["confidence"]),
    hypotheses: list(top["hypotheses"]).map(hypothesis),
    missingFact: text(top["missing_fact"]),
    nextAction: text(top["next_action"]) ?? "",
    job: {
      ranks: number(job["ranks"]),
      hosts: number(job["hosts"]),
      attempts: number(job["attempts"]),
      sources: number(job["sources"]),
      lines: number(job["lines"]),
    },
    whyNot: list(top["why_not"])
      .map(keys)
      .map((one) => ({ who: text(one["who"]) ?? "", why: text(one["why"]) ?? "" })),
    also: list(top["also"]).map(also),
    attempts: list(top["attempts"]).map((one) => ({
      ...also(one),
      attempt: number(keys(one)["attempt"]) ?? 0,
      verdict: text(keys(one)["verdict"]) ?? "",
    })),
    advice: {
      fix: texts(advice["fix"]),
      confirm: texts(advice["confirm"]),
      verify: texts(advice["verify"]),
      resume: text(advice["resume"]),
      mechanism: text(advice["mechanism"]),
      references: texts(advice["references"]),
    },
    preserve: list(top["preserve"])
      .map(keys)
      .map((one) => ({
        where: text(one["where"]) ?? "",
        command: text(one["command"]) ?? "",
        why: text(one["why"]) ?? "",
      })),
    problems: list(keys(top["coverage"])["problems"])
      .map(keys)
      .map((one) => ({
        severity: text(one["severity"]) ?? "",
        count: number(one["count"]),
        detail: text(one["detail"]) ?? "",
      })),
    refusals: texts(top["refusals"]),
  };
}

/** The diagnosis that the program printed. */
export function parse(printed: string): Diagnosis {
  let value: unknown;
  try {
    value = JSON.parse(printed);
  } catch {
    throw new DocumentError("the program printed something that is not JSON");
  }
  return decode(value);
}
