"""Drives `lanser mcp` with the reference client: a rename in the current folder, seen through every kind of message.

The client validates each `structuredContent` against the schema of its tool.
"""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


async def main(program: str) -> None:
    server = StdioServerParameters(command=program, args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        assert started.server_info.name == "lanser", started
        assert "complete" in (started.instructions or ""), started
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert len(tools) == 12, tools.keys()
        assert tools["refs"].annotations.read_only_hint and tools["rename"].annotations.destructive_hint

        steps = []

        async def progress(done: float, total: "float | None", message: "str | None") -> None:
            steps.append((done, message))

        async def call(tool: str, **arguments: object):
            return await session.call_tool(tool, arguments, progress_callback=progress)

        refs = await call("refs", selector="Shape.area")
        assert not refs.is_error, refs
        facts = refs.structured_content["facts"]
        assert facts["completeness"]["status"] == "complete", facts
        assert len(facts["references"]) == 2 and len(facts["overrides"]) == 1, facts
        assert steps and steps == sorted(steps), steps
        assert len(refs.content[0].text) <= 4096

        missing = await call("refs", selector="Shape.arae")
        assert missing.is_error, missing
        assert missing.structured_content["error"]["symbol"] == "E/NOT_FOUND", missing
        assert missing.structured_content["error"]["hint"], missing

        applied = await call("rename", selector="Shape.area", new_name="surface", family=True, apply=True)
        assert not applied.is_error, applied
        with open("shapes.py", encoding="utf-8") as file:
            assert ".surface()" in file.read()
        bundle = "lanser://bundles/" + applied.structured_content["bundleId"]
        read_back = await session.read_resource(bundle)
        assert applied.structured_content["bundleId"] in read_back.contents[0].text
        templates = await session.list_resource_templates()
        assert templates.resource_templates[0].uri_template == "lanser://bundles/{bundleId}"
        undone = await call("undo")
        assert not undone.is_error, undone
        with open("shapes.py", encoding="utf-8") as file:
            assert ".area()" in file.read()

        many = await asyncio.gather(*(call("locate", selector="Square.area") for _ in range(20)))
        assert len({result.structured_content["bundleId"] for result in many}) == 1

    # Without a handshake.
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        found = await session.discover()
        assert "2026-07-28" in found.supported_versions, found
        located = await session.call_tool("locate", {"selector": "Square.area"})
        assert not located.is_error, located
    print("ok")


asyncio.run(main(sys.argv[1]))
