"""The MCP face: eras, listings, translation, transports, auth. Decides nothing."""
