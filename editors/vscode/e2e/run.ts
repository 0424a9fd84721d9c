/**
 * The extension as a new user meets it: code-server with the packaged extension, a browser, a recorded job, the real
 * program. Needs Chromium, and `firstfault` at the path in `FIRSTFAULT` (else in the `.venv` of the project).
 *
 *     node build/e2e/run.mjs [--shots FOLDER]
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { gzipSync } from "node:zlib";

import { type Browser, chromium, type FrameLocator, type Page } from "playwright-core";

import { install, place } from "./install.mjs";

const PATIENCE = 60_000;
/** A click or a key can be swallowed while the editor still moves: what had no effect for so long is done again. */
const EFFECT = 10_000;
const ATTEMPTS = 3;
const PROJECT = resolve("..", "..");
const PROGRAM = process.env["FIRSTFAULT"] ?? join(PROJECT, ".venv", "bin", "firstfault");
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const SAMPLE = join(PROJECT, "sample_logs", "mute-rank6", "logs");

const [flag, folder] = process.argv.slice(2);
const shots = flag === "--shots" && folder !== undefined ? resolve(folder) : null;
const home = mkdtempSync(join(tmpdir(), "firstfault-e2e-"));

const EXTENSIONS = join(home, "extensions");

/** What has not come by then is late, which is no wrong answer: the next attempt may see it. */
function inTime(until: number, what: string): void {
  if (Date.now() > until) throw new Error(what);
}

/** Does it until it has its effect: `effect` waits for that, `timeout` milliseconds at most, and throws where it stays away. */
async function until(action: () => Promise<void>, effect: (timeout: number) => Promise<void>): Promise<void> {
  for (const end = Date.now() + PATIENCE; ; ) {
    try {
      await action();
      await effect(EFFECT);
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

type Settings = Readonly<Record<string, unknown>>;

const QUIET: Settings = {
  "chat.disableAIFeatures": true,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "editor.minimap.enabled": false,
  "editor.occurrencesHighlight": "off",
  "editor.wordWrap": "on",
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
};

/** One code-server with settings and a home of its own. */
class Server {
  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
    readonly port: number,
  ) {}

  static async start(name: string, settings: Settings): Promise<Server> {
    const data = join(home, name);
    const port = await freePort();
    const server = new Server(Server.command(data, ["--bind-addr", `127.0.0.1:${port}`]), data, port);
    server.set(settings);
    for (const until = Date.now() + PATIENCE; ; ) {
      const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null);
      if (answer?.ok) return server;
      await wait(200);
      inTime(until, "code-server does not answer");
    }
  }

  /** Settings of the user, and of the machine, which some are read from. */
  set(settings: Settings): void {
    for (const where of ["User", "Machine"]) {
      mkdirSync(join(this.folder, where), { recursive: true });
      writeFileSync(join(this.folder, where, "settings.json"), JSON.stringify({ ...QUIET, ...settings }));
    }
  }

  private static command(data: string, more: readonly string[]): ChildProcess {
    const { node, server } = place();
    mkdirSync(join(data, "User"), { recursive: true });
    return spawn(
      join(node, "bin", "node"),
      [server, "--auth", "none", "--disable-telemetry", "--disable-update-check", "--user-data-dir", data, "--extensions-dir", EXTENSIONS, ...more],
      { env: { ...process.env, HOME: home, XDG_CONFIG_HOME: join(home, "config"), SHELL: "/bin/bash", PATH: "/usr/bin:/bin" }, stdio: "ignore", detached: true },
    );
  }

  /** Ends it with all that it started. */
  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    if (this.process.pid !== undefined && this.process.exitCode === null) process.kill(-this.process.pid, "SIGKILL");
    await ended;
  }
}

function freePort(): Promise<number> {
  return new Promise((found) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        found(typeof address === "object" && address !== null ? address.port : 0);
      });
    });
  });
}

/** A window of the editor. */
class Window {
  private constructor(readonly page: Page) {}

  static async open(browser: Browser, server: Server, workspace: string): Promise<Window> {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] });
    page.setDefaultTimeout(PATIENCE);
    await page.goto(`http://127.0.0.1:${server.port}/?folder=${workspace}`);
    const window = new Window(page);
    await window.row("v100-r2n6").waitFor();
    await window.pick(">firstfault: Diagnose", "firstfault: Diagnose a Folder...", false); // it is installed, and not yet active
    return window;
  }

  async command(title: string): Promise<void> {
    await this.pick(`>${title}`, title);
  }

  /** Types into the palette and takes the first row with `title`; a palette that is just closing swallows the key. */
  async pick(typed: string, title: string, take = true): Promise<void> {
    const input = this.page.locator(".quick-input-widget input");
    const label = this.page.locator(".monaco-highlighted-label", { hasText: new RegExp(`^${title.replace(/[().]/g, "\\$&")}( \\(|$)`) });
    const found = this.page.locator(".quick-input-list .monaco-list-row", { has: label }).first();
    for (const until = Date.now() + PATIENCE; ; ) {
      await this.page.keyboard.press("F1");
      const listed = await input.fill(typed, { timeout: 3000 }).then(() => found.waitFor({ timeout: 5000 })).then(() => true, () => false);
      if (listed && take) await found.click();
      else await this.page.keyboard.press("Escape");
      await input.waitFor({ state: "hidden" });
      if (listed) return;
      inTime(until, `the palette has no '${title}'`);
    }
  }

  row(name: string) {
    return this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first();
  }

  /** Chooses from the menu of a row of the explorer; a menu that has just opened takes no click yet. */
  async menu(name: string, title: string): Promise<void> {
    const item = this.page.locator(".monaco-menu .action-label", { hasText: title });
    await this.row(name).click({ button: "right" });
    await item.waitFor();
    for (const until = Date.now() + PATIENCE; ; ) {
      await wait(500);
      if (!(await item.isVisible())) return;
      await item.click({ timeout: 2000 }).catch(() => undefined);
      inTime(until, `the menu of ${name} stays`);
    }
  }

  /** What the panel shows. */
  panel(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  async heading(text: string): Promise<void> {
    await this.panel().locator("h1", { hasText: text }).waitFor();
  }

  /** Diagnoses again until changed settings have arrived. */
  async again(text: string | RegExp): Promise<void> {
    const found = this.panel().locator("h1", { hasText: text });
    for (const until = Date.now() + PATIENCE; ; ) {
      await this.panel().locator("button[data-again]").click();
      await wait(1500);
      await this.page.locator(".notification-list-item", { hasText: "firstfault reads" }).waitFor({ state: "detached" });
      if (await found.waitFor({ timeout: 1500 }).then(() => true, () => false)) return;
      inTime(until, `the panel never says ${String(text)}`);
    }
  }

  /** The open log of this name is in front. */
  async tab(name: string, timeout = PATIENCE): Promise<void> {
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor({ timeout });
  }

  async atLine(line: number, timeout = PATIENCE): Promise<void> {
    await this.page.locator(".statusbar-item", { hasText: `Ln ${line}, Col 1` }).waitFor({ timeout });
  }

  /** Opens a piece of evidence of the panel, and waits for its log, its line and its note; hands out the colour of that. */
  async evidence(which: string, name: string, line: number | null, note: string): Promise<string> {
    let colour = "";
    await until(
      () => this.panel().locator(`#evidence ${which}`).first().click({ timeout: EFFECT }),
      async (timeout) => {
        await this.tab(name, timeout);
        if (line !== null) await this.atLine(line, timeout);
        colour = await this.note(note, timeout);
      },
    );
    return colour;
  }

  /** Notes behind marked lines, with the colour of each. */
  async notes(): Promise<{ text: string; colour: string }[]> {
    return this.page.evaluate(() =>
      [...document.querySelectorAll(".view-line span")]
        .map((one) => getComputedStyle(one, "::after"))
        .filter(({ content }) => content.includes("·"))
        .map(({ content, color }) => ({ text: content, colour: color })),
    );
  }

  async note(text: string, timeout: number): Promise<string> {
    for (const until = Date.now() + timeout; ; ) {
      const found = (await this.notes()).find((one) => one.text.includes(text));
      if (found !== undefined) return found.colour;
      await wait(200);
      inTime(until, `no line is marked '${text}'`);
    }
  }

  async shot(name: string): Promise<void> {
    if (shots === null) return;
    mkdirSync(shots, { recursive: true });
    await this.page.mouse.move(720, 895);
    await wait(1500);
    await this.page.screenshot({ path: join(shots, `${name}.png`) });
  }
}

async function step(name: string, action: () => Promise<void>): Promise<void> {
  const begun = Date.now();
  await action();
  console.log(`ok  ${name}  ${((Date.now() - begun) / 1000).toFixed(1)} s`);
}

async function scenario(browser: Browser, attempt: number): Promise<void> {
  const workspace = join(home, `job-${attempt}`);
  cpSync(SAMPLE, workspace, { recursive: true });
  writeFileSync(join(home, ".bashrc"), "PS1='$ '\n");
  writeFileSync(join(workspace, "fail.sh"), "cat v100-r2n5/agent.log\nexit 3\n");
  writeFileSync(join(workspace, "slurm-7.out.gz"), gzipSync(readFileSync(join(workspace, "v100-r2n5", "agent.log"))));
  const base = { "security.workspace.trust.enabled": false, "workbench.colorTheme": "Default Dark Modern" };
  const server = await Server.start(`main-${attempt}`, { ...base, "firstfault.path": join(home, "nowhere") });
  try {
    const window = await Window.open(browser, server, workspace);
    const { page } = window;
    const panel = window.panel();

    await step("in a new window, a job that fails in the terminal is offered", async () => {
      await window.command("Terminal: Create New Terminal (In Active Workspace)");
      await page.locator(".terminal-wrapper.active .xterm-screen").waitFor();
      await wait(5000); // until the shell has met the editor
      await until(
        async () => {
          await page.locator(".terminal-wrapper.active .xterm-screen").click();
          await page.keyboard.press("Control+C"); // an earlier attempt may have left half a line
          await page.keyboard.type("bash fail.sh\n", { delay: 20 });
        },
        (timeout) => page.locator(".notification-list-item", { hasText: "ended with exit status 3" }).first().waitFor({ timeout }),
      );
      await window.shot("terminal");
      await page.locator(".notification-list-item .monaco-button", { hasText: "Diagnose this output" }).first().click();
    });

    await step("says how to install what is not there", async () => {
      await window.heading("firstfault is not where the setting says");
      await panel.locator("button", { hasText: "Copy" }).first().click();
      await panel.locator("#said", { hasText: "Copied." }).waitFor();
      await window.shot("missing");
      server.set({ ...base, "firstfault.path": PROGRAM });
    });

    await step("the output of the terminal is diagnosed, and opens at its line", async () => {
      await window.again("Undetermined");
      await panel.locator("section.missing").waitFor();
      await window.evidence(".place", "bash fail.sh.log", null, "open question");
      await window.command("View: Hide Panel"); // a long line with its note needs the room
      await page.locator(".part.panel").waitFor({ state: "hidden" });
    });

    await step("two folders of the explorer are one job", async () => {
      await window.row("v100-r2n5").click();
      await window.row("v100-r2n5").click();
      await window.row("v100-r2n6").click({ modifiers: ["ControlOrMeta"] });
      await window.menu("v100-r2n6", "Diagnose with firstfault");
      await window.heading("Failed first: rank 6 on host v100-r2n6");
      for (const id of ["#evidence", "#collateral", "#fix", "#check"]) await panel.locator(id).waitFor();
    });

    await step("evidence opens its log at its line, marked as where it began", async () => {
      const began = await window.evidence("li.initiating .place", "stderr.log", 12, "began here");
      await window.shot("dark");
      assert.notEqual(await window.evidence("li.collateral .place", "error.json", 1, "only followed"), began);
    });

    await step("the same lines stand under Problems", async () => {
      await window.command("View: Focus Problems");
      await page.locator(".markers-panel .monaco-list-row", { hasText: "began here" }).first().waitFor();
      await window.shot("problems");
    });

    await step("the light theme", async () => {
      await window.evidence("li.initiating .place", "stderr.log", 12, "began here");
      server.set({ ...base, "firstfault.path": PROGRAM, "workbench.colorTheme": "Default Light Modern" });
      await page.locator(".monaco-workbench.vs").waitFor();
      await window.shot("light");
      server.set({ ...base, "firstfault.path": PROGRAM });
      await page.locator(".monaco-workbench.vs-dark").waitFor();
    });

    await step("what is selected in the terminal is diagnosed, and the clipboard as it was before", async () => {
      await page.evaluate(() => navigator.clipboard.writeText("torchrun: error: the following arguments are required: training_script"));
      await window.command("Terminal: Focus Terminal");
      await window.command("Terminal: Select All");
      await window.command("firstfault: Diagnose the Selection in the Terminal");
      await panel.locator("dd", { hasText: "selection of a terminal" }).waitFor();
      await window.command("firstfault: Diagnose the Clipboard");
      await panel.locator("dd", { hasText: /^clipboard.*1 line$/ }).waitFor();
    });

    await step("a selection is diagnosed where it stands", async () => {
      await window.pick("v100-r2n6/agent.log", "agent.log");
      await window.tab("agent.log");
      await page.locator(".editor-group-container.active .view-line", { hasText: "torch" }).first().click();
      await page.keyboard.press("ControlOrMeta+A");
      await page.locator(".statusbar-item", { hasText: "selected" }).waitFor();
      await window.command("firstfault: Diagnose the Selection");
      await panel.locator("dd", { hasText: "selection of agent.log" }).waitFor();
    });

    await step("a compressed file opens unpacked, at its line", async () => {
      await window.menu("slurm-7.out.gz", "Diagnose with firstfault");
      await panel.locator("dd", { hasText: "slurm-7.out.gz" }).waitFor();
      await window.evidence(".place", "slurm-7.out", null, "open question");
    });
    await page.close();
  } finally {
    await server.stop();
  }
}

/** A folder that is not trusted names a program; it must not run. */
async function untrusted(browser: Browser, attempt: number): Promise<void> {
  const workspace = join(home, `hostile-${attempt}`);
  cpSync(SAMPLE, workspace, { recursive: true });
  const traps = [join(workspace, "trap"), join(workspace, ".venv", "bin", "firstfault")];
  const sprung = join(home, `sprung-${attempt}`);
  mkdirSync(join(workspace, ".venv", "bin"), { recursive: true });
  mkdirSync(join(workspace, ".vscode"));
  for (const trap of traps) {
    writeFileSync(trap, `#!/bin/sh\ntouch '${sprung}'\n`);
    chmodSync(trap, 0o755);
  }
  writeFileSync(join(workspace, ".vscode", "settings.json"), JSON.stringify({ "firstfault.path": traps[0], "firstfault.arguments": ["--bogus"] }));
  const trust = { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" };
  const server = await Server.start(`restricted-${attempt}`, trust);
  try {
    await step("a folder that is not trusted runs nothing of its own", async () => {
      const window = await Window.open(browser, server, workspace);
      await window.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
      await window.menu("v100-r2n6", "Diagnose with firstfault");
      await window.heading("firstfault is not installed here");
      server.set({ ...trust, "firstfault.path": PROGRAM });
      await window.again("Failed first");
      assert.ok(!existsSync(sprung));
      await window.page.close();
    });
  } finally {
    await server.stop();
  }
}

async function main(): Promise<void> {
  assert.ok(existsSync(PROGRAM), `no firstfault at ${PROGRAM}; name one in FIRSTFAULT`);
  install();
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  const { node, server } = place();
  const into = ["--extensions-dir", EXTENSIONS, "--user-data-dir", join(home, "setup")];
  execFileSync(join(node, "bin", "node"), [server, ...into, "--install-extension", resolve("build", `firstfault-${version}.vsix`)], {
    env: { ...process.env, HOME: home },
    stdio: "ignore",
  });
  try {
    await inBrowser(scenario);
    await inBrowser(untrusted);
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 300 });
  }
}

/** A scenario in a browser and a server of its own; where the machine stumbles it begins anew, and says so. */
async function inBrowser(what: (browser: Browser, attempt: number) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await attempted(what, attempt);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || error instanceof assert.AssertionError) throw error; // what is wrong stays wrong
      console.log(`attempt ${attempt} of ${ATTEMPTS} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

async function attempted(what: (browser: Browser, attempt: number) => Promise<void>, attempt: number): Promise<void> {
  assert.ok(CHROMIUM, "no Chromium here (Debian: apt-get install chromium)");
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  try {
    await what(browser, attempt);
  } catch (error) {
    for (const page of browser.contexts().flatMap((one) => one.pages())) {
      await page.screenshot({ path: join(tmpdir(), "firstfault-e2e-failed.png") }).catch(() => undefined);
    }
    throw error;
  } finally {
    await browser.close().catch(() => undefined);
  }
}

await main();
