"""Search for small edits of Python code that make failing tests pass, in a process of its own.

- `engine` reads a `repair_request`, and runs rounds until all tests pass or nothing helps, each in a fork.
- `search_round` imports the project with the edits so far and collects its tests; `import_round` repairs imports first.
- `search` runs the tests (`baseline_run`), ranks lines (`suspicion`) and edits (`candidates`), and tries these.
- `templates/` makes the edits of an `edit_unit`; `template_hints` are what failures tell them.
- `trial_loop` keeps forks busy (`fork_pool`, `sandbox`), `trial` runs the tests of one edit in them (`code_swap`).
- `repair_report` makes the result. `mutation/` uses the same parts to find out whether tests notice bugs.
"""
