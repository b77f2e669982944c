"""Turn a task in plain words into criteria that a machine can decide."""
