/** What a terminal printed, as text: bounded while it runs, without escape sequences when it is read. */

const ESCAPES =
  // operating system commands and other strings; control sequences; the two-character rest
  /\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g;

/** Without escape sequences and backspaces; every carriage return ends a line, so that each line is one in the editor too. */
export function plain(raw: string): string {
  return raw
    .replace(ESCAPES, "")
    .replace(/\r*\n|\r+/g, "\n") // one alternative always takes the whole row of them: linear
    .replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g, "");
}

/** Keeps the end of a stream. */
export class Tail {
  private readonly chunks: string[] = [];
  private kept = 0;
  private lost = 0;

  constructor(private readonly limit = 16 * 1024 * 1024) {}

  add(chunk: string): void {
    if (chunk === "") return;
    this.chunks.push(chunk);
    this.kept += chunk.length;
    while (this.kept > this.limit) {
      const first = this.chunks[0] ?? "";
      const over = this.kept - this.limit;
      const gone = Math.min(over, first.length);
      if (gone === first.length) this.chunks.shift();
      else this.chunks[0] = first.slice(gone);
      this.kept -= gone;
      this.lost += gone;
    }
  }

  /** The text from its first whole line on, and how many characters went before it. */
  read(): { readonly text: string; readonly lost: number } {
    let raw = this.chunks.join("");
    let lost = this.lost;
    if (lost > 0) {
      const whole = raw.indexOf("\n") + 1;
      raw = raw.slice(whole);
      lost += whole;
    }
    return { text: plain(raw), lost };
  }
}

const LAUNCHERS =
  /(^|[\s/;&|(])(torchrun|torch\.distributed\.(run|launch)|srun|sbatch|mpirun|mpiexec|deepspeed|accelerate|horovodrun|colossalai|ray|jsrun|flux|python[0-9.]*|ipython)(\s|$)/;
const SIGNS = /Traceback \(most recent call last\)|\bNCCL\b|\bCUDA\b|\bRCCL\b|\bgloo\b|torch\.distributed|\brank[ :=[]?\d|slurmstepd|srun: error/i;
const LOOKED_AT = 256 * 1024;

/** Whether a command that failed was likely a job, from its command line and the end of its output. */
export function looksLikeJob(command: string, output: string): boolean {
  return LAUNCHERS.test(command.slice(0, 4096)) || SIGNS.test(output.slice(-LOOKED_AT));
}

/** Ended by the person at the keyboard (Ctrl+C, Ctrl+\) or by nobody: nothing to offer. */
export const endedByHand = (exitCode: number | undefined): boolean =>
  exitCode === undefined || exitCode === 0 || exitCode === 130 || exitCode === 131;
