/**
 * Installs code-server and the Node that it needs from npm, once, into the folder that `place` names. Only what a window
 * needs is built: the terminal. Nothing of it is part of the extension.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const CODE_SERVER = "4.139.1";
const NODE = "24.21.0";
const NODE_GYP = "13.1.0";

/** Where it lies; `FIRSTFAULT_CODE_SERVER` names another folder. */
export function place() {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const root = process.env.FIRSTFAULT_CODE_SERVER ?? join(cache, "firstfault", `code-server-${CODE_SERVER}`);
  const modules = join(root, "node_modules");
  return { root, node: join(modules, `node-linux-${process.arch}`), server: join(modules, "code-server") };
}

export function install() {
  const { root } = place();
  if (existsSync(root)) return;
  const making = `${root}.${process.pid}`;
  mkdirSync(making, { recursive: true });
  writeFileSync(join(making, "package.json"), '{"private": true}\n');
  const node = `node-linux-${process.arch}`;
  const home = join(making, "node_modules", node);
  const npm = (folder, ...what) => {
    execFileSync("npm", [...what, "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      env: { ...process.env, PATH: `${join(home, "bin")}:${process.env.PATH}`, npm_config_nodedir: home },
      stdio: ["ignore", "ignore", "inherit"],
    });
  };
  npm(making, "install", "--ignore-scripts", `${node}@${NODE}`);
  npm(making, "install", "--ignore-scripts", `code-server@${CODE_SERVER}`, `node-gyp@${NODE_GYP}`);
  const code = join(making, "node_modules", "code-server", "lib", "vscode");
  npm(code, "install", "--omit=dev", "--ignore-scripts");
  const gyp = join(making, "node_modules", "node-gyp", "bin", "node-gyp.js");
  execFileSync(join(home, "bin", "node"), [gyp, "rebuild", `--nodedir=${home}`, "--loglevel=error"], {
    cwd: join(code, "node_modules", "node-pty"),
    stdio: ["ignore", "ignore", "inherit"],
  });
  renameSync(making, root);
}
