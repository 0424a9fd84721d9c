/**
 * The program `firstfault`: where it is looked for, how it is run, and what its end means. It is run without a shell, in
 * the home folder, so that nothing in a folder of logs can take part.
 */
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";

import { type Diagnosis, DocumentError, parse } from "./document";

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Folders that may bring a program along; empty where the workspace is not trusted. */
  readonly trusted: readonly string[];
  readonly windows: boolean;
}

/** Where to look, in this order. What is set is taken alone. */
export function lookup(setting: string, { env, home, trusted, windows }: Surroundings): string[] {
  const path = (env["PATH"] ?? env["Path"] ?? "").split(windows ? ";" : ":").filter((one) => isAbsolute(one));
  const name = windows ? "firstfault.exe" : "firstfault";
  const set = setting.trim();
  if (set.startsWith("~/")) return [join(home, set.slice(2))];
  if (isAbsolute(set)) return [set];
  if (set !== "") return /[\\/]/.test(set) ? [] : path.map((folder) => join(folder, set));
  const bin = windows ? "Scripts" : "bin";
  return [
    ...path.map((folder) => join(folder, name)),
    join(home, ".local", "bin", name),
    ...trusted.flatMap((folder) => [join(folder, ".venv", bin, name), join(folder, "venv", bin, name)]),
  ];
}

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

export const locate = (candidates: readonly string[]): string | undefined => candidates.find(runs);

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  /** The last 64 KiB. */
  readonly stderr: string;
}

export type Outcome =
  | { readonly kind: "diagnosis"; readonly diagnosis: Diagnosis }
  /** It did not do its work; `what` is a sentence for people. */
  | { readonly kind: "failed"; readonly what: string }
  /** It does not know what was asked, or answers in another form: another version. */
  | { readonly kind: "version"; readonly what: string };

/** What a program that ended has to say; exit statuses as the page of its commands gives them. */
export function outcome({ code, signal, stdout, stderr }: Ended): Outcome {
  if (code === 0 || code === 3) {
    try {
      return { kind: "diagnosis", diagnosis: parse(stdout) };
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error;
      return { kind: "version", what: error.message };
    }
  }
  const said = stderr.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const own = said.filter((line) => line.startsWith("firstfault: ")).at(-1)?.slice("firstfault: ".length);
  if (code === 1 && own !== undefined) return { kind: "failed", what: own };
  if (code === 2) {
    const usage = said.find((line) => line.startsWith("Error: ")) ?? own ?? said.at(-1) ?? "wrong usage";
    return { kind: "version", what: usage.replace(/^Error: /, "") };
  }
  if (signal !== null) return { kind: "failed", what: `firstfault was ended by ${signal}; where memory is short, set --memory-limit` };
  return { kind: "failed", what: `firstfault ended with exit status ${code ?? "unknown"}: ${said.at(-1) ?? "it printed nothing"}` };
}

export class Cancelled extends Error {}
/** It could not be started. */
export class NotStarted extends Error {}

export interface Call {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly home: string;
  readonly input?: string;
  readonly signal: AbortSignal;
}

const STDOUT_LIMIT = 128 * 1024 * 1024;
const STDERR_KEPT = 64 * 1024;
const PATIENCE_MS = 3000;

/** Runs it to its end. An abort ends it with all processes that it started. */
export function run(call: Call): Promise<Ended> {
  return new Promise((resolve, reject) => {
    if (call.signal.aborted) {
      reject(new Cancelled());
      return;
    }
    const posix = process.platform !== "win32";
    const child = spawn(call.program, call.arguments, {
      cwd: call.home,
      env: { ...process.env, NO_COLOR: "1" },
      detached: posix, // a process group of its own, which can be ended as one
      windowsHide: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const end = (name: NodeJS.Signals): void => {
      try {
        if (posix && child.pid !== undefined) process.kill(-child.pid, name);
        else child.kill(name);
      } catch {
        // it has ended already
      }
    };
    let harder: NodeJS.Timeout | undefined;
    const abort = (): void => {
      end("SIGTERM");
      harder = setTimeout(() => {
        end("SIGKILL");
      }, PATIENCE_MS);
    };
    const out: Buffer[] = [];
    let size = 0;
    let flooded = false;
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= STDOUT_LIMIT) out.push(chunk);
      else if (!flooded) {
        flooded = true;
        end("SIGKILL");
      }
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = (stderr + chunk).slice(-STDERR_KEPT);
    });
    child.stdin.on("error", () => undefined); // it may end before it has read all
    child.stdin.end(call.input ?? "");
    const settle = (done: () => void): void => {
      call.signal.removeEventListener("abort", abort);
      clearTimeout(harder);
      done();
    };
    call.signal.addEventListener("abort", abort, { once: true });
    child.on("error", (error) => {
      settle(() => {
        reject(new NotStarted(error.message));
      });
    });
    child.on("close", (code, signal) => {
      settle(() => {
        if (call.signal.aborted) reject(new Cancelled());
        else if (flooded) reject(new DocumentError("the program printed more than a diagnosis can be"));
        else resolve({ code, signal, stdout: Buffer.concat(out).toString("utf8"), stderr });
      });
    });
  });
}

/** What `firstfault version` prints; null where it does not say. */
export async function version(program: string, home: string): Promise<string | null> {
  try {
    const ended = await run({ program, arguments: ["version"], home, signal: AbortSignal.timeout(20_000) });
    return ended.code === 0 ? (/^\d+(\.\w+)+/.exec(ended.stdout.trim())?.[0] ?? null) : null;
  } catch {
    return null;
  }
}

export const INSTALL: readonly string[] = ["pipx install firstfault", "python3 -m pip install firstfault"];
export const UPDATE: readonly string[] = ["pipx upgrade firstfault", "python3 -m pip install --upgrade firstfault"];
