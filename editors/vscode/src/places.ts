/** From a path in a diagnosis back to a file on this machine. */
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** What was given to the program. */
export interface Root {
  readonly path: string;
  readonly folder: boolean;
}

export type Found =
  /** A file as it lies there. */
  | { readonly kind: "file"; readonly path: string }
  /** One compressed file; its lines are those of what is in it. */
  | { readonly kind: "gzip"; readonly path: string }
  /** Inside an archive, or compressed in a way that the editor cannot read. */
  | { readonly kind: "packed"; readonly path: string }
  | { readonly kind: "unknown" };

const ARCHIVE = /\.(tar|tgz|tar\.gz|tar\.zst|tar\.bz2|tar\.xz|zip)$/i;

function inside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (!isAbsolute(way) && way !== ".." && !way.startsWith(`..${sep}`));
}

function opened(path: string): Found {
  if (/\.gz$/i.test(path)) return { kind: "gzip", path };
  return { kind: /\.(zst|bz2|xz|lz4)$/i.test(path) ? "packed" : "file", path };
}

/**
 * Where `path` of a diagnosis of `roots` lies: behind a folder that was given, a file that was given, or, where names
 * clash, with the given path in front. Never outside of what was given, whatever an archive or a log says.
 */
export function find(path: string, roots: readonly Root[], exists: (path: string) => boolean): Found {
  const parts = path.split("/");
  for (const root of roots) {
    if (!root.folder) {
      if (ARCHIVE.test(root.path)) {
        if (roots.length === 1 || path.startsWith(`${root.path}/`)) return { kind: "packed", path: root.path };
      } else if (path === basename(root.path) || path === root.path) return opened(root.path);
      continue;
    }
    const member = parts.findIndex((part) => part.endsWith("!"));
    const named = member < 0 ? path : [...parts.slice(0, member), (parts[member] ?? "").slice(0, -1)].join("/");
    const whole = isAbsolute(named) ? resolve(named) : join(root.path, named);
    if (!inside(root.path, whole) || !exists(whole)) continue;
    return member < 0 ? opened(whole) : { kind: "packed", path: whole };
  }
  return { kind: "unknown" };
}

/** A path as it is shown: where several were given and their names clash, without the folder that holds them all. */
export function shown(path: string, roots: readonly Root[]): string {
  let [parent] = roots.map((root) => dirname(root.path));
  if (parent === undefined || roots.length < 2) return path;
  while (!roots.every((root) => inside(parent ?? sep, root.path))) parent = dirname(parent);
  return isAbsolute(path) && inside(parent, path) ? relative(parent, path) : path;
}
