"""Bring the judge into other tools: clients of agents, MCP, prices, notifications. Imported only on request."""
