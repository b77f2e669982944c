"""Search for small edits of Python code that make failing tests pass, in a process of its own.

- `engine` reads a `repair_request`, and runs rounds in forks until all tests pass or no edit helps. A round is one
  search, which starts from the edits of earlier rounds.
- `search_round` imports the project with the edits so far and collects its tests; `import_round` repairs imports first.
- `search` runs the tests (`baseline_run`), ranks lines (`suspicion`) and edits (`candidates`), and tries the edits.
- `templates/` makes the edits of an `edit_unit`; `template_hints` collects names and strings from failures for it.
- `trial_loop` keeps forks busy (`fork_pool`, `sandbox`); `trial` swaps an edit in (`code_swap`) and runs the tests.
- `repair_report` makes the result; `mutation/` uses the same modules to find out whether tests notice bugs.
"""
