"""Run the search: `python -m pytest_loop.repair REQUEST.json RESULT.jsonl`."""

from pytest_loop.repair.engine import main

raise SystemExit(main())
