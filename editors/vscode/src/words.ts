/** A diagnosis in words: ranks folded to ranges, who and where, the short text that is copied. */
import type { Diagnosis, Evidence, Place } from "./document";

const NAMED = 24;

/** `0-2, 5`; beyond a few ranges the rest is counted. */
export function ranges(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((one, other) => one - other);
  const spans: [number, number][] = [];
  for (const number of sorted) {
    const last = spans.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else spans.push([number, number]);
  }
  const shown = spans.slice(0, NAMED).map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from}-${to}`));
  const hidden = spans.slice(NAMED).reduce((sum, [from, to]) => sum + to - from + 1, 0);
  return shown.join(", ") + (hidden > 0 ? ` and ${hidden} more` : "");
}

export const count = (number: number, one: string): string => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;

/** `ranks 4-7`, `host node-2`, or both; empty where neither is known. */
export function who(ranks: readonly number[], hosts: readonly string[]): string {
  const parts: string[] = [];
  if (ranks.length > 0) parts.push(`${ranks.length === 1 ? "rank" : "ranks"} ${ranges(ranks)}`);
  if (hosts.length > 0) {
    const shown = hosts.slice(0, 8).join(", ") + (hosts.length > 8 ? ` and ${hosts.length - 8} more` : "");
    parts.push(`${hosts.length === 1 ? "host" : "hosts"} ${shown}`);
  }
  return parts.join(" on ");
}

/** Where it began, also where that is no rank: `the launcher on host prt-1`, `the scheduler`, `the whole job`. */
export function where(place: Place): string {
  const named = who(place.ranks, place.hosts);
  if (place.ranks.length > 0 || place.component === null) return named;
  const outside = place.component === "job" ? "the whole job" : `the ${place.component}`;
  if (place.component === "host" && named !== "") return named;
  return named === "" ? outside : `${outside} on ${named}`;
}

export const percent = (part: number | null): string => (part === null ? "unknown" : `${Math.round(part * 100)} %`);

export const at = (evidence: Pick<Evidence, "path" | "line">): string =>
  `${evidence.path === "-" ? "line " : `${evidence.path}:`}${evidence.line}`;

/** The verdict in a few words. */
export function headline(diagnosis: Diagnosis): string {
  switch (diagnosis.verdict) {
    case "identified": {
      const place = where(diagnosis.initiating);
      return `Failed first: ${place === "" ? "place unknown" : place}`;
    }
    case "undetermined":
      return "Undetermined: the logs do not settle what failed first";
    case "no-failure":
      return "No failure: the job completed";
  }
}

/** A few lines of plain text for a message or an issue. */
export function brief(diagnosis: Diagnosis): string {
  const { failure } = diagnosis;
  const lines = [`${headline(diagnosis)} (confidence ${percent(diagnosis.confidence)})`];
  if (failure.title !== null) lines.push(`what: ${failure.title} (${[failure.class, failure.entry].filter(Boolean).join(", ")})`);
  if (diagnosis.missingFact !== null) lines.push(`missing: ${diagnosis.missingFact}`);
  for (const one of diagnosis.evidence.slice(0, 3)) lines.push(`evidence: ${at(one)} (${one.why}): ${one.text}`);
  for (const one of diagnosis.collateral.groups) lines.push(`followed: ${who(one.ranks, one.hosts)}: ${one.what}`);
  if (diagnosis.nextAction !== "") lines.push(`next: ${diagnosis.nextAction}`);
  return `${lines.join("\n")}\n`;
}
