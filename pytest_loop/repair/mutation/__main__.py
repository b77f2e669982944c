"""Run mutants: `python -m pytest_loop.repair.mutation REQUEST.json RESULT.json`."""

from pytest_loop.repair.mutation.mutation_run import main

raise SystemExit(main())
