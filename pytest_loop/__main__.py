"""`python -m pytest_loop` is `pytest-loop`."""

from pytest_loop.cli.console_script import main

raise SystemExit(main())
