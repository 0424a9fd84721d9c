/** The panel beside the editor: shows one page, and hands on what is clicked in it. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

import type { Evidence } from "./document";
import type { Assets, Page } from "./page";

export interface Actions {
  readonly open: (evidence: Evidence, panel: vscode.ViewColumn | undefined) => void;
  readonly again: () => void;
}

/** Only numbers come from the page; what they stand for is kept here. */
interface Clicked {
  readonly open?: unknown;
  readonly copy?: unknown;
  readonly again?: unknown;
  readonly settings?: unknown;
}

export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private page: Page | undefined;
  private actions: Actions | undefined;

  constructor(private readonly extension: vscode.Uri) {}

  show(title: string, make: (assets: Assets) => Page, actions: Actions): void {
    const dist = vscode.Uri.joinPath(this.extension, "dist");
    if (this.panel === undefined) {
      this.panel = vscode.window.createWebviewPanel(
        "firstfault",
        title,
        { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
        { enableScripts: true, enableCommandUris: false, enableForms: false, localResourceRoots: [dist] },
      );
      this.panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "icon.png");
      this.panel.webview.onDidReceiveMessage((message: unknown) => void this.clicked(message));
      this.panel.onDidDispose(() => {
        this.panel = undefined;
      });
    }
    const { webview } = this.panel;
    this.actions = actions;
    this.page = make({
      nonce: randomBytes(18).toString("base64url"),
      source: webview.cspSource,
      script: webview.asWebviewUri(vscode.Uri.joinPath(dist, "webview.js")).toString(),
      style: webview.asWebviewUri(vscode.Uri.joinPath(dist, "panel.css")).toString(),
    });
    this.panel.title = title;
    webview.html = this.page.html;
    this.panel.reveal(undefined, true);
  }

  private async clicked(message: unknown): Promise<void> {
    const { open, copy, again, settings } = (message ?? {}) as Clicked;
    if (typeof open === "number") {
      const place = this.page?.places[open];
      if (place !== undefined) this.actions?.open(place, this.panel?.viewColumn);
    } else if (typeof copy === "number") {
      const text = this.page?.copies[copy];
      if (text === undefined) return;
      await vscode.env.clipboard.writeText(text);
      await this.panel?.webview.postMessage({ said: "Copied." });
    } else if (again === true) this.actions?.again();
    else if (settings === true) await vscode.commands.executeCommand("workbench.action.openSettings", "firstfault.path");
  }

  dispose(): void {
    this.panel?.dispose();
  }
}
