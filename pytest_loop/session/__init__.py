"""Run one pytest session that judges, as its plugin and as the process that starts it.

- Inside: `judge` registers the others. `reports` adds evidence to reports, `record` collects it,
  `session_score` scores it.
- Between: `channel` sends messages to the run, `result` reads them; `xdist` connects workers, and `judge_service`
  the agent that judges.
- Outside: `runner` starts a session, cold or from `warm/`; `redaction` removes secrets from its result, and `repeat`
  runs single items again.
- Honesty: `canary`, `interference`, `reads`, `test_code` and `test_modules` detect code under test that manipulates its
session;
  `run_signals` reports it to the run, and `bytecode` keeps no forged bytecode.
- Order: `ordering` by `history` and `durations`; `collection_scope` chooses the files, `shard` the items.
- Files: `baseline` saves and loads verdicts, `shard` writes evidence for `pytest-loop merge`.
"""
