/** Opens a piece of evidence in the editor, at its line. */
import { existsSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import * as vscode from "vscode";

import type { Evidence } from "./document";
import { editorLines, type Wanted } from "./lines";
import { find, type Root } from "./places";
import { notice } from "./safe";
import type { Texts } from "./texts";

/** What was diagnosed: places on the disk, or a text with the document that shows it. */
export type Source =
  | { readonly kind: "paths"; readonly roots: readonly Root[] }
  | { readonly kind: "text"; readonly uri: vscode.Uri; readonly firstLine: number };

const SHARED_LIMIT = 50 * 1024 * 1024; // the editor keeps larger files to itself

/** A panel reports the focus of the click in it up to a quarter of a second late, and takes the focus back with that. */
const FOCUS_MS = 350;

export interface Spot {
  readonly uri: vscode.Uri;
  /** 0-based, as the editor counts. */
  readonly line: number;
}

export type Located = { readonly kind: "spot"; readonly spot: Spot } | { readonly kind: "closed"; readonly why: string };

/** Where all these lines stand in the editor; files are read once each. */
export async function locateAll(source: Source, evidence: readonly Evidence[], texts: Texts): Promise<Map<Evidence, Located>> {
  const found = new Map<Evidence, Located>();
  const byFile = new Map<string, Evidence[]>();
  for (const one of evidence) {
    if (source.kind === "text") {
      found.set(one, { kind: "spot", spot: { uri: source.uri, line: source.firstLine + one.line - 1 } });
      continue;
    }
    const place = find(one.path, source.roots, existsSync);
    if (place.kind === "file") byFile.set(place.path, [...(byFile.get(place.path) ?? []), one]);
    else if (place.kind === "gzip") {
      found.set(one, { kind: "spot", spot: { uri: texts.unpacked(place.path), line: one.line - 1 } });
    } else {
      const why = place.kind === "packed"
        ? `It lies inside ${place.path}: unpack that to open line ${one.line} of ${one.path}.`
        : `${one.path} is not where it was when it was diagnosed.`;
      found.set(one, { kind: "closed", why });
    }
  }
  for (const [path, inFile] of byFile) {
    const lines = await shownLines(path, inFile);
    for (const one of inFile) {
      found.set(one, { kind: "spot", spot: { uri: vscode.Uri.file(path), line: lines.get(one) ?? one.line - 1 } });
    }
  }
  return found;
}

async function shownLines(path: string, wanted: readonly Evidence[]): Promise<Map<Wanted, number>> {
  try {
    return (await stat(path)).size > SHARED_LIMIT ? new Map() : editorLines(await readFile(path), wanted);
  } catch {
    return new Map();
  }
}

/** Shows it beside the panel, always in the same column. */
export async function show(located: Located, panel: vscode.ViewColumn | undefined): Promise<void> {
  if (located.kind === "closed") {
    void vscode.window.showWarningMessage(notice(located.why));
    return;
  }
  const { uri, line } = located.spot;
  const viewColumn = panel === vscode.ViewColumn.One ? vscode.ViewColumn.Two : vscode.ViewColumn.One;
  const selection = new vscode.Range(line, 0, line, 0);
  try {
    const document = await vscode.workspace.openTextDocument(uri);
    const options = { viewColumn, selection, preview: true };
    const editor = await vscode.window.showTextDocument(document, options);
    editor.revealRange(selection, vscode.TextEditorRevealType.InCenter);
    await new Promise((resolve) => setTimeout(resolve, FOCUS_MS));
    if (vscode.window.activeTextEditor === undefined) await vscode.window.showTextDocument(document, options);
  } catch {
    // too large for extensions, or binary: the editor itself decides
    await vscode.commands.executeCommand("vscode.open", uri, { viewColumn, selection });
  }
}
