"""Turn rule files and marks into pytest items.

- `syntax` and `line_numbers` parse a rule file; `sources` validates it against `rule_schema`.
- `rule_files` merges a rule file with the files that it extends.
- `items` makes the items of each rule; `binding` connects items and marks with rules.
- `repeats` counts the votes of repeated rules; `reuse` finds verdicts of the previous evaluation.
- `checks/` has one model per kind of check, listed in `checks/registry`; they read files through `document`.
- `templates/` has the built-in rule files and the functions of their checks.
"""
