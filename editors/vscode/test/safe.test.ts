import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode } from "../src/document";
import { diagnosisPage, missingPage } from "../src/page";
import { bounded, html, notice, visible } from "../src/safe";
import { line, outOfMemory } from "./documents";

const assets = { nonce: "n0nce", source: "vscode-webview:", script: "webview.js", style: "panel.css" };
const subject = { name: "logs", summary: "the summary", lost: 0, shownPath: (path: string) => path };
const EVIL = `"><img src=x onerror=alert(1)><script>alert(2)</script>&'\u202egnp.exe\u0007[run](command:x) $(zap)`;

/** Every text of a document replaced. */
function poisoned(value: unknown, key = ""): unknown {
  if (typeof value === "string") return ["schema", "verdict"].includes(key) ? value : EVIL;
  if (Array.isArray(value)) return value.map((one) => poisoned(one));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, name)]));
}

describe("hostile text", () => {
  it("becomes text in HTML", () => {
    assert.equal(html(`<b a="1" c='2'>&`), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  });

  it("shows what would hide or turn it", () => {
    assert.equal(visible("a\u202eb\u0000c\u200bd\u{e0041}"), "a\\u202eb\\u0000c\\u200bd\\ue0041");
    assert.equal(visible("tab\tand\nnewline, ü 🏖"), "tab\tand\nnewline, ü 🏖");
  });

  it("is neither link nor icon in a notification", () => {
    assert.equal(notice("[run](command:x)\n$(zap)"), "⟦run⟧(command:x) $\u2009(zap)");
    assert.equal(notice("x".repeat(1000)).length, 300);
  });

  it("is cut between characters", () => {
    assert.equal(bounded("ab🏖cd", 4), "ab…");
    assert.equal(bounded("abcd", 4), "abcd");
  });

  it("brings no element, no attribute and no link into a page, wherever it stands", () => {
    for (const verdict of ["identified", "undetermined", "no-failure"]) {
      const document = { ...outOfMemory(), verdict, missing_fact: "x", also: [outOfMemory()], attempts: [outOfMemory(), outOfMemory()] };
      const page = diagnosisPage(decode(poisoned(document)), { ...subject, name: EVIL, summary: EVIL, lost: 3 }, assets);
      assert.doesNotMatch(page.html, /<img|onerror=alert\(1\)>|<script>|href="(?!panel\.css)/);
      assert.equal(page.html.match(/<script/g)?.length, 1);
      assert.doesNotMatch(page.html, /[\u202e\u0007]/);
    }
  });

  it("meets a policy that loads nothing and runs one script", () => {
    const { html: page } = diagnosisPage(decode(outOfMemory()), subject, assets);
    assert.match(page, /content="default-src 'none'; style-src vscode-webview:; script-src 'nonce-n0nce'; base-uri 'none'; form-action 'none'"/);
    assert.doesNotMatch(page, / style=| on[a-z]+=/);
  });
});

describe("the page", () => {
  const page = diagnosisPage(decode(outOfMemory()), subject, assets);

  it("says who, what, how sure, what to do and what to check", () => {
    for (const said of ["Failed first: rank 3 on host node-2", "CUDA out of memory", "97 %", "Who only followed", "ranks 0-2 on host node-1", "it only lost its peer", "Lower the batch size.", "nvidia-smi -q &gt; state.txt"]) {
      assert.ok(page.html.includes(said), said);
    }
  });

  it("gives each place and each copy a number of its own", () => {
    assert.deepEqual(page.places.map((one) => one.path), ["node-2/rank3.log", "node-1/rank0.log", "node-1/rank1.log"]);
    assert.deepEqual([...page.copies].sort(), ["nvidia-smi -q > state.txt", "the summary"]);
    for (let at = 0; at < page.places.length; at++) assert.ok(page.html.includes(`data-open="${at}"`));
  });

  it("links to https only", () => {
    const document = { ...outOfMemory(), advice: { references: ["javascript:alert(1)", "command:x", "http://x", "https://example.org/a"] } };
    const links = diagnosisPage(decode(document), subject, assets).html.match(/<a href="[^"]*"/g);
    assert.deepEqual(links, ['<a href="https://example.org/a"']);
  });

  it("names the missing fact where the verdict is open", () => {
    const document = { ...outOfMemory(), verdict: "undetermined", missing_fact: "the kernel log of node-2", evidence: [line("-", 7, null, null)] };
    const { html: open } = diagnosisPage(decode(document), subject, assets);
    assert.ok(open.includes("the kernel log of node-2"));
    assert.ok(open.includes("line 7"));
    assert.ok(!open.includes("began here"));
  });

  it("says how to install, with something to copy", () => {
    const missing = missingPage({ title: "not here", paragraphs: ["why"], commands: ["pipx install firstfault"], looked: ["/usr/bin/firstfault"] }, assets);
    assert.deepEqual(missing.copies, ["pipx install firstfault"]);
    assert.ok(missing.html.includes("/usr/bin/firstfault"));
  });
});
