// Starts `piper lsp`; shows grids, and a panel beside the program.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { Panel } = require("./panel");

let client;

async function activate(context) {
  const settings = () => vscode.workspace.getConfiguration("piper");
  client = new LanguageClient(
    "piper",
    "Piper",
    { command: settings().get("command", "piper"), args: ["lsp"] },
    {
      documentSelector: [{ language: "pipe" }],
      initializationOptions: settings(),
      synchronize: { configurationSection: "piper" },
      middleware: {
        // The grid of a train or schedule in an editor of its own, and not in a file.
        async executeCommand(name, args, next) {
          if (name === "piper.open") return panel.show();
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
  const panel = new Panel(client);
  context.subscriptions.push(panel, vscode.commands.registerCommand("piper.showPanel", () => panel.show()));
  try {
    await client.start();
  } catch {
    const open = "Open settings"; // why it did not start the client has said
    const chosen = await vscode.window.showErrorMessage(`Piper: \`${settings().get("command", "piper")} lsp\` did not start. Set \`piper.command\` to the program.`, open);
    if (chosen === open) vscode.commands.executeCommand("workbench.action.openSettings", "piper.command");
  }
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
