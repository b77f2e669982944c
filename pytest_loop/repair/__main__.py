"""`python -m pytest_loop.repair ORDER.json RESULT.jsonl`."""

from pytest_loop.repair.run import main

raise SystemExit(main())
