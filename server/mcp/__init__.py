"""The MCP server: its tools, resources and prompts, and standard input and output as its transport."""
