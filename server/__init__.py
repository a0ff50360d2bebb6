"""The doors: the MCP server with its toolsets, over stdio and HTTP. No rules of its own."""

__all__: list[str] = []
