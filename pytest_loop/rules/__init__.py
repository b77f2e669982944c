"""Turn rule files and marks into pytest items.

- `syntax` and `line_numbers` parse a file, `sources` validates it (`rule_schema`), `rule_files` merges what it extends.
- `items` makes one item per rule; `binding` joins items, marks and rules. `repeats` votes, `reuse` keeps verdicts.
- `checks/` has one model per kind of check, listed in `checks/registry`; they read files through `document`.
- `templates/` has the built-in rule files and the functions of their checks.
"""
