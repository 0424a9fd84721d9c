/** Which lines of which logs are marked, and as what: where the failure began, who only followed, what is still open. */
import type { Diagnosis, Evidence, Place } from "./document";

export type Kind = "initiating" | "candidate" | "collateral" | "proof";

export interface Mark {
  readonly evidence: Evidence;
  readonly kind: Kind;
}

/**
 * Whose line a piece of evidence is. Its rank decides where ranks are accused, else its host; a line that names neither,
 * or evidence for a cause that lies with no rank and no host, counts for the cause that it was given for.
 */
export function isOwn(evidence: Evidence, place: Place): boolean {
  if (place.ranks.length > 0 && evidence.rank !== null) return place.ranks.includes(evidence.rank);
  if (place.hosts.length > 0 && evidence.host !== null) return place.hosts.includes(evidence.host);
  return true;
}

/** Evidence first, in its order, then examples of those who followed; each place in a log once. */
export function marks(diagnosis: Diagnosis): Mark[] {
  const found = new Map<string, Mark>();
  const add = (evidence: Evidence, kind: Kind): void => {
    const key = `${evidence.line} ${evidence.path}`;
    if (!found.has(key)) found.set(key, { evidence, kind });
  };
  const of = (evidence: readonly Evidence[], place: Place): void => {
    for (const one of evidence) add(one, isOwn(one, place) ? "initiating" : "collateral");
  };
  switch (diagnosis.verdict) {
    case "identified":
      of(diagnosis.evidence, diagnosis.initiating);
      break;
    case "undetermined":
      for (const one of diagnosis.evidence) add(one, "candidate");
      break;
    case "no-failure":
      for (const one of diagnosis.evidence) add(one, "proof");
      break;
  }
  for (const one of diagnosis.also) of(one.evidence, one.initiating);
  for (const one of diagnosis.attempts) {
    if (one.verdict === "identified") of(one.evidence, one.initiating);
  }
  for (const group of diagnosis.collateral.groups) {
    if (group.example !== null) add(group.example, "collateral");
  }
  return [...found.values()];
}

export const KIND_WORDS: Readonly<Record<Kind, string>> = {
  initiating: "began here",
  candidate: "open question",
  collateral: "only followed",
  proof: "proof of completion",
};
