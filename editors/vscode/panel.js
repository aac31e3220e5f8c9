// A panel with grid, timeline and memory of the train or schedule at the cursor; it follows the cursor and the edits.
const vscode = require("vscode");

const DELAY = 150; // ms after the last key or move

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** One page from the answer of the server: its page, with the grid above and the memory below. */
function pageOf({ title, grid, page, memory }) {
  const style = `<style>
    body { padding: 0 10px; }
    .piper-title { font-size: 1.1em; margin: 8px 0 4px; }
    .piper-grid { overflow-x: auto; margin: 0 0 10px; font: 12px/1.35 var(--vscode-editor-font-family, monospace); }
    .piper-memory svg { max-width: 100%; height: auto; }
    .piper-stale { display: none; color: var(--vscode-editorWarning-foreground); margin: 4px 0; }
    body.stale .piper-stale { display: block; }
    body.stale main, body.stale .piper-grid, body.stale .piper-memory { opacity: 0.45; }
  </style>`;
  // The page's colours are those of the editor; messages say that the text has no plan now.
  const script = `<script>
    document.documentElement.dataset.theme = document.body.classList.contains("vscode-light") || document.body.classList.contains("vscode-high-contrast-light") ? "light" : "dark";
    addEventListener("message", ({ data }) => {
      document.body.classList.toggle("stale", Boolean(data.stale));
      if (data.stale) document.querySelector(".piper-stale").textContent = data.stale;
    });
  </script>`;
  const above = `${script}<div class="piper-title">${escaped(title)}</div><div class="piper-stale"></div><pre class="piper-grid">${escaped(grid)}</pre>`;
  // Functions, since the texts may have \`$\`.
  return page
    .replace("</head>", () => style + "</head>")
    .replace("<body>", () => "<body>" + above)
    .replace("</main>", () => `</main><div class="piper-memory">${memory.replace(/^<\?xml.*?\?>/, "")}</div>`);
}

class Panel {
  constructor(client) {
    this.client = client;
    this.subscriptions = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.later(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => this.later(editor)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.later(vscode.window.visibleTextEditors.find((editor) => editor.document === document))),
    ];
  }

  dispose() {
    clearTimeout(this.timer);
    this.subscriptions.forEach((each) => each.dispose());
    if (this.view) this.view.dispose();
  }

  show() {
    if (!this.view) {
      this.view = vscode.window.createWebviewPanel("piper", "Piper", { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true }, { enableScripts: true, localResourceRoots: [] });
      this.view.onDidDispose(() => {
        this.view = this.shown = this.html = undefined;
      });
    } else {
      this.view.reveal(undefined, true);
    }
    const editor = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors].find((each) => each && each.document.languageId === "pipe");
    return this.update(editor);
  }

  later(editor) {
    if (!this.view || !editor || editor.document.languageId !== "pipe") return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(editor), DELAY);
  }

  async update(editor) {
    if (!this.view || !editor) return;
    const uri = editor.document.uri.toString();
    const { line, character } = editor.selection.active;
    if (this.request) this.request.cancel();
    const request = (this.request = new vscode.CancellationTokenSource());
    const argument = { uri, position: { line, character }, name: this.shown && this.shown.uri === uri ? this.shown.name : "" };
    try {
      const result = await this.client.sendRequest("workspace/executeCommand", { command: "piper.page", arguments: [argument] }, request.token);
      if (request !== this.request || !this.view) return;
      this.shown = { uri, name: result.name };
      const html = pageOf(result);
      this.view.title = result.name;
      if (html !== this.html) this.view.webview.html = this.html = html;
      this.view.webview.postMessage({ stale: "" });
    } catch (error) {
      // An edit or another move asks again; else the text has no plan now, and the last one stays.
      if (request !== this.request || !this.view || request.token.isCancellationRequested) return;
      if (error.code === -32801) return this.later(editor);
      if (!this.html) this.view.webview.html = `<p>${escaped(error.message)}</p>`;
      this.view.webview.postMessage({ stale: error.message });
    }
  }
}

module.exports = { Panel, pageOf };
