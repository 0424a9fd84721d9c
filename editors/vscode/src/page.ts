/** The page of the panel: a diagnosis as HTML. Every text goes through `html`; what can be clicked is a number. */
import type { Also, Diagnosis, Evidence } from "./document";
import { isOwn, type Kind, KIND_WORDS } from "./marks";
import { html } from "./safe";
import { at, count, headline, percent, who, where } from "./words";

export interface Assets {
  readonly nonce: string;
  /** Source of the editor for what the extension brings along. */
  readonly source: string;
  readonly script: string;
  readonly style: string;
}

/** What the page is about, beside the diagnosis. */
export interface Subject {
  readonly name: string;
  /** What the first copy button gives. */
  readonly summary: string;
  /** Characters of a terminal that were not kept. */
  readonly lost: number;
  readonly shownPath: (path: string) => string;
}

/** What the numbers of a page stand for. */
export interface Page {
  readonly html: string;
  readonly places: readonly Evidence[];
  readonly copies: readonly string[];
}

const NODE_LIMIT = 200;

class Writer {
  readonly places: Evidence[] = [];
  readonly copies: string[] = [];

  constructor(private readonly shownPath: (path: string) => string) {}

  place(evidence: Evidence): string {
    this.places.push(evidence);
    const name = html(at({ path: this.shownPath(evidence.path), line: evidence.line }));
    return `<button type="button" class="place" data-open="${this.places.length - 1}" title="Open ${html(at(evidence))}">${name}</button>`;
  }

  copy(text: string, label: string, shown = "Copy"): string {
    this.copies.push(text);
    return `<button type="button" class="copy" data-copy="${this.copies.length - 1}" aria-label="${html(label)}">${html(shown)}</button>`;
  }

  section(title: string, body: string, open = true, id = ""): string {
    if (body === "") return "";
    const name = id === "" ? "" : ` id="${id}"`;
    return `<details${open ? " open" : ""}${name}><summary><h2>${title}</h2></summary>${body}</details>`;
  }

  bullets(texts: readonly string[]): string {
    return texts.length === 0 ? "" : `<ul>${texts.slice(0, NODE_LIMIT).map((one) => `<li>${html(one)}</li>`).join("")}</ul>`;
  }

  line(evidence: Evidence, kind: Kind): string {
    const owner = who(evidence.rank === null ? [] : [evidence.rank], evidence.host === null ? [] : [evidence.host]);
    return (
      `<li class="${kind}"><p>${this.place(evidence)} <span class="kind">${KIND_WORDS[kind]}</span>` +
      `${owner === "" ? "" : ` <span class="owner">${html(owner)}</span>`}</p>` +
      `<pre><code>${html(evidence.text)}</code></pre><p class="why">${html(evidence.why)}</p></li>`
    );
  }
}

const row = (term: string, value: string): string => (value === "" ? "" : `<dt>${term}</dt><dd>${value}</dd>`);

function later(write: Writer, one: Also): string {
  const name = [one.failure.title ?? one.failure.class ?? "a failure", where(one.initiating)].filter(Boolean).join(": ");
  const lines = one.evidence.map((line) => write.line(line, isOwn(line, one.initiating) ? "initiating" : "collateral"));
  return `<p>${html(name)}</p><ul class="lines">${lines.join("")}</ul>`;
}

function body(write: Writer, diagnosis: Diagnosis, { name, summary, lost }: Subject): string {
  const { failure, initiating, collateral, job, advice } = diagnosis;
  const kindOf = (one: Evidence): Kind =>
    diagnosis.verdict === "identified"
      ? isOwn(one, initiating) ? "initiating" : "collateral"
      : diagnosis.verdict === "undetermined" ? "candidate" : "proof";
  const evidence = diagnosis.evidence.map((one) => write.line(one, kindOf(one))).join("");
  const groups = collateral.groups
    .slice(0, NODE_LIMIT)
    .map((one) => `<li class="collateral"><b>${html(who(one.ranks, one.hosts))}</b> ${html(one.what)}` +
      `${one.example === null ? "" : ` ${write.place(one.example)}`}</li>`)
    .join("");
  const followed = groups !== "" ? `<ul class="lines">${groups}</ul>` : "";
  const hypotheses = diagnosis.hypotheses
    .slice(0, 20)
    .map((one) => `<li><b>${html(one.class)}</b> ${html(who(one.ranks, one.hosts))} <span class="kind">${percent(one.confidence)}</span>` +
      write.bullets([...one.for.map((text) => `for: ${text}`), ...one.against.map((text) => `against: ${text}`)]) + "</li>")
    .join("");
  const attempts = diagnosis.attempts.length < 2 ? "" : `<ol class="attempts" start="0">${diagnosis.attempts
    .slice(0, NODE_LIMIT)
    .map((one) => `<li>${html(one.verdict)}${one.failure.title === null ? "" : `: ${html(one.failure.title)}`} ${html(where(one.initiating))}` +
      `${one.evidence[0] === undefined ? "" : ` ${write.place(one.evidence[0])}`}</li>`)
    .join("")}</ol>`;
  const preserve = diagnosis.preserve
    .map((one) => `<li>${html(one.where)}: ${html(one.why)}<div class="command"><pre><code>${html(one.command)}</code></pre>` +
      `${write.copy(one.command, `Copy the command for ${one.where}`)}</div></li>`)
    .join("");
  const read = [
    ...diagnosis.problems.map((one) => `${one.severity}: ${one.detail}${one.count === null ? "" : ` (${count(one.count, "time")})`}`),
    ...diagnosis.refusals,
  ];
  const references = advice.references
    .filter((one) => /^https:\/\/[^\s"'<>]+$/.test(one))
    .map((one) => `<li><a href="${html(one)}">${html(one)}</a></li>`)
    .join("");
  const size = [
    job.ranks === null ? "" : count(job.ranks, "rank"),
    job.hosts === null ? "" : count(job.hosts, "host"),
    job.attempts === null ? "" : count(job.attempts, "attempt"),
    job.sources === null ? "" : count(job.sources, "file"),
    job.lines === null ? "" : count(job.lines, "line"),
  ].filter((one) => one !== "").join(" · ");
  const gone = lost === 0 ? "" : `<p class="note">The terminal printed more than is kept: the first ${count(lost, "character")} are not part of this. The log file has them.</p>`;
  const id = [failure.class, failure.entry].filter((one) => one !== null).map((one) => `<code>${html(one)}</code>`).join(", ");
  return `<header class="${diagnosis.verdict}">
<h1>${html(headline(diagnosis))}</h1>
<p class="summary">${html(diagnosis.summary)}</p>
<p class="tools">${write.copy(summary, "Copy a summary", "Copy a summary")} <button type="button" data-again>Diagnose again</button> <span id="said" role="status"></span></p>
</header>${gone}
<dl>
${row("what", failure.title === null ? "" : `${html(failure.title)}<br>${id}`)}
${row("where", html(where(initiating)))}
${row("GPU", html(initiating.gpus.join(", ")))}
${row("when", html(initiating.at ?? ""))}
${row("confidence", diagnosis.confidence === null ? "" : `<meter min="0" max="1" value="${diagnosis.confidence}" aria-hidden="true"></meter> ${percent(diagnosis.confidence)}`)}
${row("read", `${html(name)}<br>${size}`)}
</dl>
${diagnosis.missingFact === null ? "" : `<section class="missing"><h2>What is missing</h2><p>${html(diagnosis.missingFact)}</p></section>`}
${diagnosis.nextAction === "" || (diagnosis.missingFact !== null && diagnosis.nextAction.includes(diagnosis.missingFact)) ? "" : `<section class="next"><h2>Next</h2><p>${html(diagnosis.nextAction)}</p></section>`}
${write.section("Evidence", evidence === "" ? "" : `<ul class="lines">${evidence}</ul>`, true, "evidence")}
${write.section("Who only followed", followed, true, "collateral")}
${write.section("Why not others", write.bullets(diagnosis.whyNot.map((one) => `${one.who}: ${one.why}`)))}
${write.section("Later failures of their own", diagnosis.also.map((one) => later(write, one)).join(""))}
${write.section("Fix", write.bullets(advice.fix), true, "fix")}
${write.section("Check", write.bullets(advice.confirm), true, "check")}
${write.section("How to see that it worked", write.bullets(advice.verify), false)}
${write.section("Resume", advice.resume === null || advice.resume === "" ? "" : `<p>${html(advice.resume)}</p>`, false)}
${write.section("Save before a restart", preserve === "" ? "" : `<ul>${preserve}</ul>`, false)}
${write.section("Candidates", hypotheses === "" ? "" : `<ul>${hypotheses}</ul>`, diagnosis.verdict === "undetermined")}
${write.section("Attempts", attempts, false)}
${write.section("What happens inside", advice.mechanism === null || advice.mechanism === "" ? "" : `<p>${html(advice.mechanism)}</p>`, false)}
${write.section("References", references === "" ? "" : `<ul>${references}</ul>`, false)}
${write.section("What was not understood", write.bullets(read), false)}`;
}

function document(assets: Assets, title: string, content: string): string {
  // nothing is loaded but the two files of the extension, and nothing inline runs
  const policy = `default-src 'none'; style-src ${assets.source}; script-src 'nonce-${assets.nonce}'; base-uri 'none'; form-action 'none'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(title)}</title>
<link rel="stylesheet" href="${html(assets.style)}">
</head>
<body>
<main>${content}</main>
<script nonce="${assets.nonce}" src="${html(assets.script)}"></script>
</body>
</html>
`;
}

export function diagnosisPage(diagnosis: Diagnosis, subject: Subject, assets: Assets): Page {
  const write = new Writer(subject.shownPath);
  const content = body(write, diagnosis, subject);
  return { html: document(assets, headline(diagnosis), content), places: write.places, copies: write.copies };
}

export interface Missing {
  readonly title: string;
  readonly paragraphs: readonly string[];
  readonly commands: readonly string[];
  /** Where it was looked for. */
  readonly looked: readonly string[];
}

/** The page that says how to get the program. */
export function missingPage(missing: Missing, assets: Assets): Page {
  const write = new Writer((path) => path);
  const commands = missing.commands.map(
    (one) => `<li><div class="command"><pre><code>${html(one)}</code></pre>${write.copy(one, `Copy ${one}`)}</div></li>`,
  );
  const content = `<header class="undetermined"><h1>${html(missing.title)}</h1></header>
${missing.paragraphs.map((one) => `<p>${html(one)}</p>`).join("\n")}
<ul class="commands">${commands.join("")}</ul>
<p class="tools"><button type="button" data-again>Try again</button> <button type="button" data-settings>Set the path of the program</button> <span id="said" role="status"></span></p>
${write.section("Where it was looked for", write.bullets(missing.looked), false)}`;
  return { html: document(assets, missing.title, content), places: write.places, copies: write.copies };
}
