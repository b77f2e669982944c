"""Turn the words of a task and the files of a project into criteria.

- Words: `task_phrases` parses a task, `task_intent` classifies it, `task_refusal` refuses one that cannot be measured.
- Project: `project_files` reads it, `sources/` finds its commands, `candidate_selection` chooses among them.
- Criteria: `synthesis` makes a `proposal` from both; `inferred_criteria` and `coverage_criteria` build its parts.
- Documents: `task_types` detects the type, `document_criteria` drafts the rules (`document_requirements`).
- Files for agents: `project_context` and `shape_file` extract rules from them.
- The draft: `clarity`, `reversibility` and `workflow` rate it, `gates` says when a person is asked.
"""
