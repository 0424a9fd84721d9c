/**
 * Line numbers of the program against those of the editor. The program ends lines at `\n` only, the editor also at a
 * carriage return alone, which progress bars write by the thousand.
 */

const LF = 0x0a;
const CR = 0x0d;
const COMPARED = 60;

export interface Wanted {
  /** 1-based, as the program counts. */
  readonly line: number;
  /** What stands there, without its headers. */
  readonly text: string;
}

/** Of each wanted line the 0-based line in the editor; of a line that carriage returns cut, the piece with its text. */
export function editorLines(bytes: Buffer, wanted: readonly Wanted[]): Map<Wanted, number> {
  const found = new Map<Wanted, number>();
  const sorted = [...wanted].sort((one, other) => one.line - other.line);
  let line = 1;
  let shown = 0; // lines of the editor before this one
  let start = 0;
  let at = 0;
  let cr = next(bytes, CR, 0); // the next carriage return, found once: lines without one cost nothing
  while (at < sorted.length) {
    const newline = bytes.indexOf(LF, start);
    const end = newline < 0 ? bytes.length : newline;
    const pieces: number[] = [];
    for (; cr < end; cr = next(bytes, CR, cr + 1)) {
      if (cr + 1 !== newline) pieces.push(cr + 1); // the one before a newline belongs to it
    }
    for (let one = sorted[at]; one?.line === line; one = sorted[++at]) {
      found.set(one, shown + piece(bytes, start, end, pieces, one.text));
    }
    if (newline < 0) break;
    shown += pieces.length + 1;
    start = newline + 1;
    line += 1;
  }
  for (const one of sorted.slice(at)) found.set(one, Math.max(0, one.line - 1));
  return found;
}

function next(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from);
  return found < 0 ? bytes.length : found;
}

function piece(bytes: Buffer, start: number, end: number, pieces: readonly number[], text: string): number {
  if (pieces.length === 0) return 0;
  const borders = [start, ...pieces, end];
  const sought = Buffer.from(text.slice(0, COMPARED));
  let filled = 0;
  for (let index = borders.length - 2; index >= 0; index--) {
    const one = bytes.subarray(borders[index], borders[index + 1]);
    if (sought.length > 0 && one.includes(sought)) return index;
    if (filled === 0 && one.some((byte) => byte > 0x20)) filled = index;
  }
  return filled;
}
