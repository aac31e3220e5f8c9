// A real VS Code workbench in a headless browser, with the extension as it is packaged: node workbench.mjs TOOLS PROGRAM EXTENSION SCRATCH [PICTURES]
import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { createRequire } from "node:module";

const [tools, program, extension, scratch, pictures] = process.argv.slice(2);
const { chromium } = createRequire(path.join(tools, "node/"))("playwright-core");
const LIMIT = Number(process.env.LIMIT ?? 180000); // ms for each thing that is waited for

const folder = path.join(scratch, "project");
fs.mkdirSync(path.join(folder, ".vscode"), { recursive: true });
const text = fs.readFileSync(program, "utf8");
fs.writeFileSync(path.join(folder, "net.pipe"), text);
fs.writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({
  "workbench.startupEditor": "none", "editor.inlayHints.enabled": "on", "editor.minimap.enabled": false, "telemetry.telemetryLevel": "off", "files.autoSave": "off",
  "workbench.colorTheme": "Default Light Modern", "security.workspace.trust.enabled": false,
  "piper.command": execFileSync("sh", ["-c", "command -v piper"], { encoding: "utf8" }).trim(),
}));

const code = path.join(tools, "workbench/node_modules/code-server/lib/vscode/out/server-main.js");
const folders = ["--extensions-dir", path.join(scratch, "extensions"), "--user-data-dir", path.join(scratch, "user"), "--server-data-dir", path.join(scratch, "server")];
execFileSync(process.execPath, [code, ...folders, "--install-extension", extension], { stdio: "pipe" });

const port = await new Promise((resolve) => {
  const probe = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const log = fs.openSync(path.join(scratch, "workbench.log"), "w");
const server = spawn(process.execPath, [code, ...folders, "--host", "127.0.0.1", "--port", String(port), "--without-connection-token", "--accept-server-license-terms",
  "--disable-workspace-trust", "--disable-telemetry"], { stdio: ["ignore", log, log] });

let failed = false, page;
const picture = async (name, clip) => pictures && page.screenshot({ path: path.join(pictures, name + ".png"), clip });
async function test(name, body) {
  if (failed) return; // each goes on where the one before ended
  try {
    await body();
    console.log("ok      " + name);
  } catch (error) {
    failed = true;
    console.log("FAILED  " + name + "\n" + error.stack);
    await page.screenshot({ path: path.join(scratch, "failed-" + name.replace(/\W/g, "_") + ".png") });
  }
}
async function until(what, condition) {
  const end = Date.now() + LIMIT;
  for (;;) {
    const value = await condition().catch(() => undefined);
    if (value) return value;
    if (Date.now() > end) throw new Error("waited for: " + what);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const address = `http://127.0.0.1:${port}/`;
  await until("the server", async () => (await fetch(address)).ok);
  page = await (await browser.newContext({ viewport: { width: 1500, height: 950 } })).newPage();
  page.setDefaultTimeout(LIMIT);
  await page.goto(`${address}?folder=${encodeURIComponent(folder)}`);
  await page.locator(".monaco-workbench").waitFor();

  const all = (selector) => page.locator(selector).allTextContents().then((list) => list.map((each) => each.replace(/\u00a0/g, " ")));
  const command = async (name) => {
    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget input").waitFor();
    await page.keyboard.type(name);
    await until("the command " + name, async () => (await all(".quick-input-list .monaco-list-row .label-name")).some((each) => each.includes(name)));
    await page.keyboard.press("Enter");
  };
  const goTo = async (line, column) => {
    await page.keyboard.press("Control+g");
    await page.locator(".quick-input-widget input").waitFor();
    await page.keyboard.type(`${line}:${column}`);
    await page.keyboard.press("Enter");
    await until("the editor", () => page.evaluate(() => Boolean(document.activeElement.closest(".monaco-editor"))));
  };
  const lineOf = (piece) => text.slice(0, text.indexOf(piece)).split("\n").length;
  const columnOf = (piece) => text.split("\n")[lineOf(piece) - 1].indexOf(piece) + 1;

  await test("opens a program", async () => {
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "net.pipe" }).dblclick();
    await until("its text", async () => (await all(".view-lines")).join("").includes("schedule plain"));
    await until("its language", async () => (await all(".statusbar-item")).some((each) => each.includes("Piper")));
  });

  await test("lenses", () => until("bubble and peak", async () => (await all(".codelens-decoration")).some((each) => /bubble [\d.]+%, peak/.test(each))));
  await test("hints", () => until("what a cursor has left", async () => (await all(".view-lines")).join("").includes("= 3, 4")));

  await test("squiggles as one types, and a fix", async () => {
    await goTo(lineOf("plain(pp, 4)"), columnOf("plain(pp, 4)") + 6);
    await page.keyboard.type("q");
    await page.locator(".squiggly-error").first().waitFor();
    await picture("squiggle");
    await page.keyboard.press("Control+.");
    await until("the fix", async () => (await all(".action-widget .monaco-list-row")).some((each) => each.includes("pp")));
    await page.keyboard.press("Enter");
    await until("the text as it was", async () => (await all(".view-lines")).join("").includes("plain(pp, 4)"));
    await page.locator(".squiggly-error").first().waitFor({ state: "detached" });
  });

  await test("completion", async () => {
    await goTo(lineOf("replicate model"), columnOf("replicate model") + "replicate model over dp".length);
    await page.keyboard.type("\nre");
    await page.keyboard.press("Control+Space");
    const rows = await until("words", async () => {
      const rows = await all(".suggest-widget.visible .monaco-list-row .label-name");
      return rows.includes("replicate") && rows;
    });
    if (rows.includes("return") || rows.includes("region")) throw new Error("`return` and `region` do not belong in a train: " + rows);
    await picture("completion");
    await page.keyboard.press("Escape");
    for (let i = 0; i < 2; ++i) await page.keyboard.press("Control+Backspace");
    await page.keyboard.press("Control+Backspace");
  });

  await test("hover", async () => {
    await page.locator(".view-line span", { hasText: /^width$/ }).last().hover();
    await until("the text of the hover", async () => (await all(".monaco-hover:not(.hidden)")).join("").includes("How wide the middle is."));
    await page.locator(".view-line span", { hasText: /^lr$/ }).last().hover();
    await until("what the argument means", async () => (await all(".monaco-hover:not(.hidden)")).join("").includes("learning rate"));
    await picture("hover", { x: 350, y: 90, width: 1000, height: 480 });
  });

  await test("the panel follows the cursor and what is typed", async () => {
    await goTo(lineOf("train net"), 7);
    await command("Piper: Show Grid, Timeline and Memory");
    const inner = () => page.frames().find((frame) => frame.url().includes("fake.html") || frame.name() === "active-frame") ?? page.frames().at(-1);
    const shown = async (selector) => (await inner().locator(selector).allTextContents()).join("\n");
    await until("the grid of the train", async () => (await shown(".piper-title")).startsWith("net") && (await shown(".piper-grid")).includes("rank 0"));
    await until("the timeline", () => inner().evaluate(() => document.body.dataset.drawn !== undefined));
    if (!(await inner().locator(".piper-memory svg").count())) throw new Error("no memory");
    await picture("panel");
    await goTo(lineOf("partition model"), 8);
    await until("the schedule", async () => (await shown(".piper-title")).startsWith("plain at "));
    const before = await shown(".piper-grid");
    await goTo(lineOf("repeat min(last - r, m)"), columnOf("repeat min(last - r, m)") + "repeat min(".length);
    await page.keyboard.type("1 + ");
    await until("another grid", async () => (await shown(".piper-grid")) !== before);
    await page.keyboard.type("(");
    await until("that there is no plan", async () => (await shown(".piper-stale")).length > 0);
    await picture("panel-stale");
  });
} finally {
  await browser.close();
  server.kill();
}
process.exit(failed ? 1 : 0);
