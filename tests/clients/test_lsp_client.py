"""Drives `lanser lsp` with pytest-lsp, in the current folder. The client reads every answer with the types of lsprotocol."""

import os
import pathlib

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

ROOT = pathlib.Path.cwd()
SHAPES = (ROOT / "shapes.py").as_uri()
USE = (ROOT / "use.py").as_uri()


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[os.environ["LANSER_TEST_PROGRAM"], "lsp", "--rename-family"])
)
async def client(lsp_client: LanguageClient):
    params = types.InitializeParams(capabilities=client_capabilities("visual_studio_code"), root_uri=ROOT.as_uri())
    lsp_client.feature("client/registerCapability")(lambda params: None)
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


def at(line: int, character: int) -> types.Position:
    return types.Position(line=line, character=character)


async def test_navigation(client: LanguageClient):
    document = types.TextDocumentIdentifier(SHAPES)
    found = await client.text_document_definition_async(
        types.DefinitionParams(types.TextDocumentIdentifier(USE), at(2, 7))
    )
    assert [(place.uri, place.range.start.line) for place in found] == [(SHAPES, 10)]
    found = await client.text_document_references_async(
        types.ReferenceParams(types.ReferenceContext(include_declaration=True), document, at(1, 9))
    )
    assert [place.range.start.line for place in found] == [1, 11]
    hover = await client.text_document_hover_async(types.HoverParams(document, at(10, 5)))
    assert "-> float" in hover.contents.value
    symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    assert {symbol.name for symbol in symbols} >= {"Shape", "Square", "total"}
    found = await client.workspace_symbol_async(types.WorkspaceSymbolParams(query="Square"))
    assert "Square" in {symbol.name for symbol in found}
    items = await client.text_document_prepare_call_hierarchy_async(
        types.CallHierarchyPrepareParams(document, at(10, 5))
    )
    callers = await client.call_hierarchy_incoming_calls_async(types.CallHierarchyIncomingCallsParams(items[0]))
    assert [call.from_.uri for call in callers] == [USE]


async def test_a_change_a_rename_and_diagnostics(client: LanguageClient):
    text = "from shapes import Square\n\nSquare().area(1)\n"
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(USE, "python", 1, text))
    )
    document = types.TextDocumentIdentifier(USE)
    offered = await client.text_document_prepare_rename_async(types.PrepareRenameParams(document, at(2, 10)))
    assert offered is not None
    edit = await client.text_document_rename_async(types.RenameParams(document, at(2, 10), "surface"))
    changed = {change.text_document.uri: change for change in edit.document_changes}
    assert set(changed) == {SHAPES, USE}
    assert changed[USE].text_document.version == 1
    assert [one.range.start for one in changed[USE].edits] == [at(2, 9)]
    report = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
    assert [item.code for item in report.items] == ["reportCallIssue"]
    assert (ROOT / "use.py").read_text().startswith("from shapes import Square, total")
