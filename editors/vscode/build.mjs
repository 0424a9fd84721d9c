/**
 * Builds the extension: `dist/` for the editor; with `--test` it runs the tests, with `--e2e` it
 * builds those that need a window;
 * with `--package` the `.vsix`, byte for byte the same from the same sources.
 */
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);
const shared = { bundle: true, target: "node20", platform: "node", logLevel: "warning" };

async function extension() {
  rmSync("dist", { recursive: true, force: true });
  await build({ ...shared, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", format: "cjs", external: ["vscode"], minify: true });
  await build({ bundle: true, target: "es2022", logLevel: "warning", entryPoints: ["src/webview.ts"], outfile: "dist/webview.js", format: "iife", minify: true });
  cpSync("src/panel.css", "dist/panel.css");
}

async function tests(folder, entryPoints, more) {
  rmSync(join("build", folder), { recursive: true, force: true });
  await build({ ...shared, entryPoints, outdir: join("build", folder), format: "cjs", external: ["vscode", "playwright-core"], ...more });
}

/** What goes into the package is laid out anew with fixed modes and times: neither umask nor clock shows in it. */
function pack() {
  const stage = join("build", "package");
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  for (const name of ["package.json", "README.md", "CHANGELOG.md", "dist", "media/icon.png"]) {
    cpSync(name, join(stage, name), { recursive: true });
  }
  copyFileSync("../../LICENSE", join(stage, "LICENSE"));
  for (const one of readdirSync(stage, { recursive: true, withFileTypes: true })) {
    chmodSync(join(one.parentPath, one.name), one.isDirectory() ? 0o755 : 0o644);
  }
  const { name, version } = JSON.parse(readFileSync("package.json", "utf8"));
  const vsix = join(here, "build", `${name}-${version}.vsix`);
  const vsce = join(here, "node_modules", "@vscode", "vsce", "vsce");
  execFileSync(process.execPath, [vsce, "package", "--no-dependencies", "--allow-missing-repository", "--out", vsix], {
    cwd: stage,
    env: { ...process.env, TZ: "UTC", SOURCE_DATE_EPOCH: "1767225600" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const bytes = readFileSync(vsix);
  console.log(`build/${name}-${version}.vsix  ${bytes.length} bytes  sha256 ${createHash("sha256").update(bytes).digest("hex")}`);
}

const [mode] = process.argv.slice(2);
if (mode === "--test") {
  const names = readdirSync("test").filter((one) => one.endsWith(".test.ts")).sort();
  await tests("test", names.map((one) => join("test", one)));
  const built = names.map((one) => join("build", "test", one.replace(/ts$/, "js")));
  execFileSync(process.execPath, ["--test", "--test-reporter=dot", ...built], { stdio: "inherit" });
} else {
  await extension();
  if (mode === "--e2e") await tests("e2e", ["e2e/run.ts"], { format: "esm", outExtension: { ".js": ".mjs" } });
  if (mode === "--e2e" || mode === "--package") pack();
}
