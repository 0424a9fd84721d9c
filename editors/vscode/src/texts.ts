/** Texts that lie in no file: the output of a terminal, a pasted log, the inside of a compressed file. Read-only. */
import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import * as vscode from "vscode";

const SCHEME = "firstfault";
const KEPT = 8;
const UNPACKED_LIMIT = 48 * 1024 * 1024; // the editor hands files up to 50 MB to extensions

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly known = new Map<string, () => Promise<string>>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  private made = 0;

  provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return this.known.get(uri.path)?.() ?? Promise.resolve("This text is no longer kept. Diagnose again to see it.\n");
  }

  /** A document with this text. */
  add(name: string, text: string): vscode.Uri {
    this.made += 1;
    return this.keep(`/${this.made}/${name}.log`, () => Promise.resolve(text));
  }

  /** A document with what is in a file that gzip compressed. */
  unpacked(path: string): vscode.Uri {
    return this.keep(`/unpacked${path.replace(/\.gz$/i, "")}`, () => gunzip(path));
  }

  private keep(path: string, read: () => Promise<string>): vscode.Uri {
    this.known.delete(path);
    this.known.set(path, read);
    for (const one of this.known.keys()) {
      if (this.known.size <= KEPT) break;
      this.known.delete(one);
    }
    return vscode.Uri.from({ scheme: SCHEME, path });
  }

  dispose(): void {
    this.registration.dispose();
    this.known.clear();
  }
}

async function gunzip(path: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const stream = createReadStream(path).pipe(createGunzip());
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > UNPACKED_LIMIT) {
      stream.destroy();
      throw new Error(`${path} holds more than the editor can show; unpack it and open a part of it`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
