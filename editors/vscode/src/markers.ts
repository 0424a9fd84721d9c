/** Marks in open logs, and the same lines under Problems. */
import * as vscode from "vscode";

import { type Kind, KIND_WORDS, type Mark } from "./marks";
import type { Spot } from "./opener";
import { bounded, visible } from "./safe";
import { who } from "./words";

export interface Marked {
  readonly mark: Mark;
  readonly spot: Spot;
}

const KINDS: readonly Kind[] = ["initiating", "candidate", "collateral", "proof"];

const SEVERITY: Readonly<Record<Kind, vscode.DiagnosticSeverity>> = {
  initiating: vscode.DiagnosticSeverity.Error,
  candidate: vscode.DiagnosticSeverity.Warning,
  collateral: vscode.DiagnosticSeverity.Information,
  proof: vscode.DiagnosticSeverity.Hint,
};

function decoration(kind: Kind): vscode.TextEditorDecorationType {
  if (kind === "proof") return vscode.window.createTextEditorDecorationType({});
  const colour = new vscode.ThemeColor(`firstfault.${kind}Foreground`);
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor(`firstfault.${kind}Background`),
    borderColor: colour,
    borderStyle: "solid",
    borderWidth: "0 0 0 3px",
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Full,
    after: { color: colour, margin: "0 0 0 2em", fontStyle: "italic" },
  });
}

function words({ kind, evidence }: Mark): string {
  const owner = who(evidence.rank === null ? [] : [evidence.rank], evidence.host === null ? [] : [evidence.host]);
  return visible([KIND_WORDS[kind], owner, evidence.why].filter((one) => one !== "").join(" · "));
}

export class Markers implements vscode.Disposable {
  private readonly problems = vscode.languages.createDiagnosticCollection("firstfault");
  private readonly decorations = new Map(KINDS.map((kind) => [kind, decoration(kind)]));
  private readonly shown = vscode.window.onDidChangeVisibleTextEditors((editors) => {
    for (const editor of editors) this.decorate(editor);
  });
  private marked: readonly Marked[] = [];

  /** Takes the place of all marks before. */
  set(marked: readonly Marked[], failure: string | null): void {
    this.marked = marked;
    this.problems.clear();
    const byFile = new Map<string, [vscode.Uri, vscode.Diagnostic[]]>();
    for (const { mark, spot } of marked) {
      if (mark.kind === "proof") continue;
      const range = new vscode.Range(spot.line, 0, spot.line, Number.MAX_SAFE_INTEGER);
      const one = new vscode.Diagnostic(range, bounded(words(mark), 500), SEVERITY[mark.kind]);
      one.source = "firstfault";
      if (failure !== null && mark.kind === "initiating") one.code = failure;
      const key = spot.uri.toString();
      const entry = byFile.get(key) ?? [spot.uri, []];
      entry[1].push(one);
      byFile.set(key, entry);
    }
    this.problems.set([...byFile.values()]);
    for (const editor of vscode.window.visibleTextEditors) this.decorate(editor);
  }

  clear(): void {
    this.set([], null);
  }

  private decorate(editor: vscode.TextEditor): void {
    const here = this.marked.filter(({ spot }) => spot.uri.toString() === editor.document.uri.toString());
    for (const [kind, type] of this.decorations) {
      editor.setDecorations(
        type,
        here.filter(({ mark, spot }) => mark.kind === kind && spot.line < editor.document.lineCount).map(({ mark, spot }) => ({
          range: editor.document.lineAt(spot.line).range,
          // appended as text: a log cannot bring markup or links into it
          hoverMessage: new vscode.MarkdownString().appendText(`firstfault: ${words(mark)}`),
          renderOptions: { after: { contentText: bounded(words(mark), 120) } },
        })),
      );
    }
  }

  dispose(): void {
    this.shown.dispose();
    this.problems.dispose();
    for (const one of this.decorations.values()) one.dispose();
  }
}
