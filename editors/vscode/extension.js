// Starts `piper lsp` and shows grids beside the program.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate(context) {
  const command = vscode.workspace.getConfiguration("piper").get("command", "piper");
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.pipe");
  client = new LanguageClient(
    "piper",
    "Piper",
    { command, args: ["lsp"] },
    {
      documentSelector: [{ language: "pipe" }],
      initializationOptions: vscode.workspace.getConfiguration("piper"),
      synchronize: { configurationSection: "piper", fileEvents: watcher },
      middleware: {
        // The grid of a train or schedule in an editor of its own, and not in a file.
        async executeCommand(name, args, next) {
          const result = await next(name, args);
          if (name === "piper.grid" && result) {
            const document = await vscode.workspace.openTextDocument({ content: result.text, language: "plaintext" });
            await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
          }
          return result;
        },
      },
    }
  );
  context.subscriptions.push(watcher);
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
