"""The server over HTTP: addresses, tokens, sessions and bounds around the MCP application."""
