"""Built-in rule files (templates), and the functions that their `python` checks call."""
