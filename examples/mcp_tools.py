"""Tools of any MCP server as Turnwise tools: listed, checked before they are called, and given to an environment.

Run it: ``python examples/mcp_tools.py`` (needs turnwise[mcp]; the server is this file, started with ``serve``)
"""

import sys

from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.mcp_client import McpConnection, StdioServer


def serve() -> None:
    """A server of three lines, by the official SDK; any other will do."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("stock")

    @server.tool()
    def in_stock(article: str, pieces: int = 1) -> str:
        """Whether so many pieces of an article are in stock."""
        return "yes" if article == "scarf" and pieces <= 3 else "no"

    server.run("stdio")


def call(tool: Tool, **arguments: object) -> str:
    """What an environment does with a model's call: check it, then carry it out."""
    return str(tool.function(**tool.validate(ToolCall(tool.spec.name, arguments))))


def main() -> None:
    with McpConnection(StdioServer((sys.executable, __file__, "serve"))) as connection:
        (tool,) = connection.tools()  # an environment of yours has them as its `tools`
        print(tool.spec.name, tool.spec.parameters["properties"])
        print("3 scarves:", call(tool, article="scarf", pieces=3))
        try:
            call(tool, article="scarf", pieces="many")
        except ToolError as error:  # what a model got wrong becomes an observation
            print("refused:", error)


if __name__ == "__main__":
    serve() if "serve" in sys.argv else main()
