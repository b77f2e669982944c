"""The built-in search for small edits that make failing tests pass. It runs as a process of its own."""
