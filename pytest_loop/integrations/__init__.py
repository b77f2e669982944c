"""Connect clients of agents to the judge by hooks, skills and an MCP server. Imported only on request."""
