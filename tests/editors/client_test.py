"""A real client library (pygls, lsprotocol) against the server: it decodes each answer into the types of the protocol, and refuses any other."""

import asyncio
import os
import pathlib
import tempfile
import unittest

from lsprotocol import types
from pygls.lsp.client import LanguageClient

PROGRAM = (pathlib.Path(__file__).parent / "net.pipe").read_text()
LIMIT = 30  # seconds for an answer


class Session(LanguageClient):
    """A client that keeps the server's notifications."""

    def __init__(self):
        super().__init__("piper-editor-tests", "1")
        self.published = {}
        self.arrived = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: types.PublishDiagnosticsParams):
            self.published.setdefault(params.uri, []).append(params)
            self.arrived.set()

        @self.feature(types.WORKSPACE_CONFIGURATION)
        def _(params: types.ConfigurationParams):
            return [{"values": {}} for _ in params.items]

    async def diagnostics(self, uri, version):
        """The last diagnostics of that version: a check first reports names and types."""
        async def last():
            while True:
                shown = [each for each in self.published.get(uri, []) if each.version == version]
                if shown:
                    return list(shown[-1].diagnostics)
                self.arrived.clear()
                await self.arrived.wait()
        return await asyncio.wait_for(last(), LIMIT)


def place(text, marked):
    """The position of `^` in a piece of the text."""
    at = text.index(marked.replace("^", "")) + marked.index("^")
    line = text.count("\n", 0, at)
    return types.Position(line, at - (text.rfind("\n", 0, at) + 1))


def applied(text, edits):
    lines = text.split("\n")
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line) + 1)
    offset = lambda position: begins[position.line] + position.character
    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        text = text[:offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end):]
    return text


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().slow_callback_duration = LIMIT  # a machine under load is no fault
        self.folder = tempfile.TemporaryDirectory()
        self.uri = (pathlib.Path(self.folder.name) / "net.pipe").as_uri()
        self.item = types.TextDocumentIdentifier(self.uri)
        os.environ["PIPER_CACHE"] = self.folder.name + "/cache"
        self.client = Session()
        await self.client.start_io("piper", "lsp")
        folder = types.WorkspaceFolder(pathlib.Path(self.folder.name).as_uri(), "tests")
        started = await self.ask("initialize", types.InitializeParams(
            capabilities=types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(configuration=True)), workspace_folders=[folder]))
        self.capabilities = started.capabilities
        self.client.initialized(types.InitializedParams())

    async def asyncTearDown(self):
        await asyncio.wait_for(self.client.shutdown_async(None), LIMIT)
        self.client.exit(None)
        await asyncio.wait_for(self.client._server.wait(), LIMIT)
        self.assertEqual(self.client._server.returncode, 0)
        await self.client.stop()
        self.folder.cleanup()

    async def ask(self, method, params):
        return await asyncio.wait_for(getattr(self.client, method + "_async")(params), LIMIT)

    def open(self, text=PROGRAM):
        self.text = text
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(self.uri, "pipe", 1, text)))

    def edit(self, version, marked, new_text):
        """Puts a text at `^`."""
        at = place(self.text, marked)
        change = types.TextDocumentContentChangePartial(range=types.Range(at, at), text=new_text)
        self.text = applied(self.text, [types.TextEdit(change.range, new_text)])
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(version, self.uri), [change]))

    def at(self, kind, marked, **more):
        return kind(text_document=self.item, position=place(self.text, marked), **more)

    async def test_diagnostics_follow_the_text(self):
        self.open()
        self.assertEqual(await self.client.diagnostics(self.uri, 1), [])
        self.edit(2, "plain(p^p, 4)", "q")
        found = await self.client.diagnostics(self.uri, 2)
        self.assertEqual([(each.code, each.severity) for each in found], [("P2010", types.DiagnosticSeverity.Error)])
        self.assertEqual(found[0].range.start, place(self.text, "plain(^pqp, 4)"))
        actions = await self.ask("text_document_code_action", types.CodeActionParams(self.item, found[0].range, types.CodeActionContext(found)))
        self.assertTrue(actions)
        self.assertEqual(applied(self.text, actions[0].edit.changes[self.uri]), PROGRAM)

    async def test_each_request_gives_what_the_protocol_says(self):
        self.open()
        hover = await self.ask("text_document_hover", self.at(types.HoverParams, "hidden: wid^th"))
        self.assertIn("How wide the middle is.", hover.contents.value)
        listed = await self.ask("text_document_completion", self.at(types.CompletionParams, "plain(^pp, 4)"))
        items = listed if isinstance(listed, list) else listed.items
        self.assertIn("pp", [item.label for item in items])
        signature = await self.ask("text_document_signature_help", self.at(types.SignatureHelpParams, "plain(^pp, 4)"))
        self.assertIn("plain(", signature.signatures[0].label)
        there = await self.ask("text_document_definition", self.at(types.DefinitionParams, "pl^ain(pp"))
        there = there[0] if isinstance(there, list) else there
        self.assertEqual(there.range.start, place(self.text, "schedule ^plain"))
        library = await self.ask("text_document_definition", self.at(types.DefinitionParams, "= ml^p("))
        library = library[0] if isinstance(library, list) else library
        self.assertIn("model mlp(", pathlib.Path(library.uri.removeprefix("file://")).read_text())
        places = await self.ask("text_document_references", self.at(types.ReferenceParams, "let la^st", context=types.ReferenceContext(True)))
        self.assertEqual(len(places), 2)
        await self.ask("text_document_prepare_rename", self.at(types.PrepareRenameParams, "let la^st"))
        renamed = await self.ask("text_document_rename", self.at(types.RenameParams, "let la^st", new_name="final"))
        self.assertEqual(applied(self.text, renamed.changes[self.uri]), self.text.replace("last", "final"))
        highlights = await self.ask("text_document_document_highlight", self.at(types.DocumentHighlightParams, "let la^st"))
        self.assertEqual(len(highlights), 2)
        symbols = await self.ask("text_document_document_symbol", types.DocumentSymbolParams(self.item))
        self.assertEqual([symbol.name for symbol in symbols], ["width", "pair", "plain", "scale", "net"])
        self.assertTrue(await self.ask("workspace_symbol", types.WorkspaceSymbolParams("plain")))
        whole = types.Range(types.Position(0, 0), types.Position(len(self.text.split("\n")), 0))
        self.assertTrue(await self.ask("text_document_inlay_hint", types.InlayHintParams(self.item, whole)))
        tokens = await self.ask("text_document_semantic_tokens_full", types.SemanticTokensParams(self.item))
        self.assertEqual(len(tokens.data) % 5, 0)
        self.assertLess(max(tokens.data[3::5]), len(self.capabilities.semantic_tokens_provider.legend.token_types))
        self.assertTrue(await self.ask("text_document_folding_range", types.FoldingRangeParams(self.item)))
        self.assertTrue(await self.ask("text_document_selection_range", types.SelectionRangeParams(self.item, [place(self.text, "let la^st")])))
        lenses = await self.ask("text_document_code_lens", types.CodeLensParams(self.item))
        resolved = [lens if lens.command else await self.ask("code_lens_resolve", lens) for lens in lenses]
        self.assertTrue(any("bubble" in lens.command.title for lens in resolved), resolved)
        grid = await self.ask("workspace_execute_command", types.ExecuteCommandParams("piper.grid", [{"uri": self.uri, "name": "net"}]))
        self.assertIn("rank 0", dict(grid)["text"] if isinstance(grid, dict) else grid.text)

    async def test_formatting_gives_the_layout_of_the_project(self):
        self.open(PROGRAM.replace("    let last", "  let   last"))
        edits = await self.ask("text_document_formatting", types.DocumentFormattingParams(self.item, types.FormattingOptions(4, True)))
        self.assertEqual(applied(self.text, edits), PROGRAM)


if __name__ == "__main__":
    unittest.main()
