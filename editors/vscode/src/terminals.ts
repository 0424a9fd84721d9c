/** Keeps what the last command of each terminal printed, and offers a diagnosis where a job failed. */
import * as vscode from "vscode";

import { notice } from "./safe";
import { endedByHand, looksLikeJob, Tail } from "./terminalText";

export interface Output {
  readonly command: string;
  readonly text: string;
  /** Characters that went before the text and are not kept. */
  readonly lost: number;
}

interface Kept {
  readonly command: string;
  readonly tail: Tail;
  readonly done: Promise<void>;
}

const LAST_WORDS_MS = 500;

export class Terminals implements vscode.Disposable {
  private readonly last = new Map<vscode.Terminal, Kept>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly diagnose: (output: Output) => void) {
    this.subscriptions = [
      vscode.window.onDidStartTerminalShellExecution(({ terminal, execution }) => {
        const tail = new Tail();
        const done = (async () => {
          for await (const chunk of execution.read()) tail.add(chunk);
        })().catch(() => undefined);
        this.last.set(terminal, { command: execution.commandLine.value, tail, done });
      }),
      vscode.window.onDidEndTerminalShellExecution((event) => void this.ended(event)),
      vscode.window.onDidCloseTerminal((terminal) => {
        this.last.delete(terminal);
      }),
    ];
  }

  /** What the last command of this terminal printed so far. */
  output(terminal: vscode.Terminal): Output | undefined {
    const kept = this.last.get(terminal);
    if (kept === undefined) return undefined;
    const { text, lost } = kept.tail.read();
    return text.trim() === "" ? undefined : { command: kept.command, text, lost };
  }

  private async ended({ terminal, exitCode, execution }: vscode.TerminalShellExecutionEndEvent): Promise<void> {
    if (endedByHand(exitCode)) return;
    const wish = vscode.workspace.getConfiguration("firstfault").get<string>("offerOnFailure", "jobs");
    if (wish === "never") return;
    const kept = this.last.get(terminal);
    if (kept === undefined) return;
    await Promise.race([kept.done, new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS))]);
    const { text, lost } = kept.tail.read();
    const command = kept.command !== "" ? kept.command : execution.commandLine.value;
    if (text.trim() === "" || (wish !== "always" && !looksLikeJob(command, text))) return;
    const name = command === "" ? "The command" : notice(command, 80);
    const chosen = await vscode.window.showInformationMessage(
      `${name} ended with exit status ${exitCode ?? 0}.`,
      "Diagnose this output",
      "Never offer",
    );
    if (chosen === "Diagnose this output") this.diagnose({ command, text, lost });
    else if (chosen === "Never offer") {
      await vscode.workspace.getConfiguration("firstfault").update("offerOnFailure", "never", vscode.ConfigurationTarget.Global);
    }
  }

  dispose(): void {
    for (const one of this.subscriptions) one.dispose();
  }
}
