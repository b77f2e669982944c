"""Run the command `pytest-loop` as `python -m pytest_loop`."""

from pytest_loop.cli.console_script import main

raise SystemExit(main())
