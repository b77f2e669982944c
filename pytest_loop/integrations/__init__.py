"""Bring the judge into other tools: clients of agents and MCP servers. Imported only on request."""
