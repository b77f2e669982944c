"""Run one pytest session that judges, as its plugin and as the process that starts it.

- Inside: `judge` registers the others. `reports` adds evidence to reports, `record` collects it, `session_score` ends.
- Between: `channel` sends messages to the run, `result` reads them; `xdist` connects workers, and `judge_service`
  the agent that judges.
- Outside: `runner` starts a session, cold or from `warm/`; `redaction` and `repeat` are around it.
- Honesty: `canary`, `interference`, `reads`, `test_code` and `bytecode` notice code that manipulates its session.
- Order: `ordering` by `history` and `durations`; `collection_scope` chooses the files.
"""
