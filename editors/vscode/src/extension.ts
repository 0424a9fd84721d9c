/** The commands of the extension. Nothing runs, and nothing is read, before one of them is called or a terminal opens. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { basename } from "node:path";
import * as vscode from "vscode";

import { type Diagnosis, DocumentError, type Evidence } from "./document";
import { marks } from "./marks";
import { Markers, type Marked } from "./markers";
import { locateAll, show, type Source } from "./opener";
import { diagnosisPage, type Missing, missingPage } from "./page";
import { Panel } from "./panel";
import { shown } from "./places";
import { Cancelled, INSTALL, locate, lookup, NotStarted, outcome, run, UPDATE, version } from "./program";
import { bounded, notice, visible } from "./safe";
import { type Output, Terminals } from "./terminals";
import { Texts } from "./texts";
import { plain } from "./terminalText";
import { brief, headline } from "./words";

interface Job {
  /** What it is called in titles. */
  readonly name: string;
  readonly source: Source;
  readonly input: string | null;
  readonly lost: number;
}

export function activate(context: vscode.ExtensionContext): void {
  const app = new App(context.extensionUri);
  const command = (name: string, action: (...given: never[]) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`firstfault.${name}`, action);
  context.subscriptions.push(
    app,
    command("diagnose", (uri?: vscode.Uri, chosen?: vscode.Uri[]) => app.paths(chosen?.length ? chosen : uri ? [uri] : [])),
    command("diagnoseFile", (uri?: vscode.Uri) => app.file(uri)),
    command("diagnoseFolder", (uri?: vscode.Uri) => app.folder(uri)),
    command("diagnoseSelection", () => app.selection()),
    command("diagnoseTerminal", () => app.terminal()),
    command("diagnoseTerminalSelection", () => app.terminalSelection()),
    command("diagnoseClipboard", () => app.clipboard()),
    command("show", () => { app.showLast(); }),
    command("clear", () => { app.clear(); }),
    command("install", () => {
      app.missing([], "");
    }),
  );
}

class App implements vscode.Disposable {
  private readonly panel: Panel;
  private readonly texts = new Texts();
  private readonly markers = new Markers();
  private readonly log = vscode.window.createOutputChannel("firstfault");
  private readonly terminals = new Terminals((output) => void this.output(output));
  private running: AbortController | undefined;
  private last: (() => void) | undefined;

  constructor(extension: vscode.Uri) {
    this.panel = new Panel(extension);
  }

  // what is diagnosed

  async paths(uris: readonly vscode.Uri[]): Promise<void> {
    const files = uris.filter((uri) => uri.scheme === "file");
    if (files.length === 0) {
      void vscode.window.showWarningMessage("firstfault reads files and folders of this machine; of other places, select the text and diagnose the selection.");
      return;
    }
    const roots = [];
    for (const { fsPath } of files) {
      try {
        roots.push({ path: fsPath, folder: statSync(fsPath).isDirectory() });
      } catch (error) {
        void vscode.window.showErrorMessage(notice(`${fsPath} cannot be read: ${error instanceof Error ? error.message : String(error)}`));
        return;
      }
    }
    const first = basename(files[0]?.fsPath ?? "");
    const name = files.length === 1 ? first : `${first} and ${files.length - 1} more`;
    await this.diagnose({ name, source: { kind: "paths", roots }, input: null, lost: 0 });
  }

  async file(uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri?.toString());
    if (document !== undefined && (document.isDirty || document.uri.scheme !== "file")) {
      await this.text(basename(document.uri.path), document.getText(), { uri: document.uri, firstLine: 0 });
    } else if (uri !== undefined) await this.paths([uri]);
    else void vscode.window.showWarningMessage("Open a log, or choose a file in the explorer.");
  }

  async folder(uri?: vscode.Uri): Promise<void> {
    const open = vscode.workspace.workspaceFolders ?? [];
    const chosen = uri !== undefined ? [uri] : await vscode.window.showOpenDialog({
      canSelectFolders: true,
      canSelectFiles: false,
      openLabel: "Diagnose",
      title: "The folder with the logs of the job",
      ...(open[0] === undefined ? {} : { defaultUri: open[0].uri }),
    });
    if (chosen?.[0] !== undefined) await this.paths(chosen);
  }

  async selection(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || editor.selection.isEmpty) {
      void vscode.window.showWarningMessage("Select lines of a log first.");
      return;
    }
    const { document, selection } = editor;
    // whole lines: half a line has lost its stamp
    const range = new vscode.Range(selection.start.line, 0, selection.end.line, Number.MAX_SAFE_INTEGER);
    const name = `selection of ${basename(document.uri.path)}`;
    await this.text(name, document.getText(range), { uri: document.uri, firstLine: selection.start.line });
  }

  async terminal(): Promise<void> {
    const terminal = vscode.window.activeTerminal;
    const output = terminal === undefined ? undefined : this.terminals.output(terminal);
    if (output !== undefined) await this.output(output);
    else {
      void vscode.window.showWarningMessage(
        "Nothing is kept of this terminal: its shell does not tell the editor where commands begin and end, or none has run since the extension started. Select the output in the terminal and choose Diagnose the Selection in the Terminal.",
      );
    }
  }

  /** There is no other way to the selection of a terminal than through the clipboard, which is put back. */
  async terminalSelection(): Promise<void> {
    const before = await vscode.env.clipboard.readText();
    await vscode.env.clipboard.writeText("");
    await vscode.commands.executeCommand("workbench.action.terminal.copySelection");
    const text = plain(await vscode.env.clipboard.readText());
    await vscode.env.clipboard.writeText(before);
    if (text.trim() === "") void vscode.window.showWarningMessage("Select the output in the terminal first.");
    else await this.text("selection of a terminal", text);
  }

  async clipboard(): Promise<void> {
    const text = plain(await vscode.env.clipboard.readText());
    if (text.trim() === "") void vscode.window.showWarningMessage("The clipboard holds no text. Copy the output of the job first.");
    else await this.text("clipboard", text);
  }

  private async output({ command, text, lost }: Output): Promise<void> {
    await this.text(bounded(visible(command).replace(/[/\\?#]/g, " ").trim(), 40) || "terminal", text, undefined, lost);
  }

  private async text(name: string, text: string, shown?: { uri: vscode.Uri; firstLine: number }, lost = 0): Promise<void> {
    const place = shown ?? { uri: this.texts.add(name, text), firstLine: 0 };
    await this.diagnose({ name, source: { kind: "text", ...place }, input: text, lost });
  }

  // the diagnosis

  private async diagnose(job: Job): Promise<void> {
    const settings = vscode.workspace.getConfiguration("firstfault");
    const candidates = lookup(settings.get("path", ""), {
      env: process.env,
      home: homedir(),
      trusted: vscode.workspace.isTrusted ? (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath) : [],
      windows: process.platform === "win32",
    });
    this.last = () => void this.diagnose(job);
    const program = locate(candidates);
    if (program === undefined) {
      this.missing(candidates, settings.get("path", "").trim());
      return;
    }
    this.running?.abort();
    const stop = new AbortController();
    this.running = stop;
    const paths = job.source.kind === "paths" && job.input === null ? job.source.roots.map((root) => root.path) : ["-"];
    const call = {
      program,
      arguments: ["diagnose", ...settings.get<string[]>("arguments", []), "--format", "json", "--quiet", ...paths],
      home: homedir(),
      signal: stop.signal,
      ...(job.input === null ? {} : { input: job.input }),
    };
    const progress = { location: vscode.ProgressLocation.Notification, cancellable: true, title: notice(`firstfault reads ${job.name}`, 120) };
    try {
      const ended = await vscode.window.withProgress(progress, async (report, token) => {
        const begun = Date.now();
        const clock = setInterval(() => {
          report.report({ message: `${Math.round((Date.now() - begun) / 1000)} s` });
        }, 1000);
        const asked = token.onCancellationRequested(() => {
          stop.abort();
        });
        try {
          return await run(call);
        } finally {
          clearInterval(clock);
          asked.dispose();
        }
      });
      if (ended.stderr !== "") this.log.append(ended.stderr);
      const result = outcome(ended);
      if (result.kind === "diagnosis") await this.show(job, result.diagnosis);
      else if (result.kind === "version") await this.otherVersion(program, result.what);
      else this.failed(result.what);
    } catch (error) {
      if (error instanceof Cancelled) return;
      if (!(error instanceof NotStarted) && !(error instanceof DocumentError)) throw error;
      this.failed(error instanceof NotStarted ? `${program} does not start: ${error.message}` : error.message);
    } finally {
      if (this.running === stop) this.running = undefined;
    }
  }

  private async show(job: Job, diagnosis: Diagnosis): Promise<void> {
    const marked = marks(diagnosis);
    const located = await locateAll(job.source, marked.map((one) => one.evidence), this.texts);
    const spots: Marked[] = [];
    for (const mark of marked) {
      const place = located.get(mark.evidence);
      if (place?.kind === "spot") spots.push({ mark, spot: place.spot });
    }
    this.markers.set(spots, diagnosis.failure.class);
    void vscode.commands.executeCommand("setContext", "firstfault.diagnosed", true);
    const again = (): void => void this.diagnose(job);
    const open = (evidence: Evidence, column: vscode.ViewColumn | undefined): void => {
      void locateAll(job.source, [evidence], this.texts).then((found) => {
        const place = found.get(evidence);
        return place === undefined ? undefined : show(place, column);
      });
    };
    const roots = job.source.kind === "paths" ? job.source.roots : [];
    const subject = { name: job.name, summary: visible(brief(diagnosis)), lost: job.lost, shownPath: (path: string) => shown(path, roots) };
    this.last = () => {
      this.panel.show(notice(`firstfault: ${job.name}`, 60), (assets) => diagnosisPage(diagnosis, subject, assets), { open, again });
    };
    this.last();
    vscode.window.setStatusBarMessage(notice(`firstfault: ${headline(diagnosis)}`, 120), 15_000);
  }

  showLast(): void {
    this.last?.();
  }

  clear(): void {
    this.markers.clear();
  }

  // what goes wrong

  missing(looked: readonly string[], set: string): void {
    const elsewhere = process.platform === "linux" ? [] : ["firstfault runs on Linux: open the folder with the logs through WSL, Remote - SSH or a container, and install it there."];
    const here = "The extension runs the command firstfault on this machine; nothing is sent anywhere.";
    const why =
      set === ""
        ? `${here} Install it with one of these, or set the path of a program that is there:`
        : `The setting firstfault.path says ${set}; ${looked.length === 0 ? "it must be an absolute path, or begin with ~/" : "there is no program that can be run"}. Mend or empty it. ${here} To install it:`;
    this.page({
      title: set === "" ? "firstfault is not installed here" : "firstfault is not where the setting says",
      paragraphs: [why, ...elsewhere],
      commands: INSTALL,
      looked,
    });
  }

  private async otherVersion(program: string, what: string): Promise<void> {
    const found = await version(program, homedir());
    this.page({
      title: "This firstfault does not fit the extension",
      paragraphs: [
        `${program}${found === null ? "" : ` is version ${found} and`} does not do what the extension asked for: ${what}.`,
        "Where the setting firstfault.arguments holds something, look there first. Otherwise bring firstfault, or the extension, up to date:",
      ],
      commands: UPDATE,
      looked: [program],
    });
  }

  private page(missing: Missing): void {
    this.panel.show("firstfault", (assets) => missingPage(missing, assets), {
      open: () => undefined,
      again: this.last ?? (() => undefined),
    });
  }

  private failed(what: string): void {
    void vscode.window.showErrorMessage(notice(`firstfault: ${what}`, 400), "Show Its Messages").then((chosen) => {
      if (chosen !== undefined) this.log.show(true);
    });
  }

  dispose(): void {
    this.running?.abort();
    for (const one of [this.panel, this.texts, this.markers, this.terminals, this.log]) one.dispose();
  }
}
