from __future__ import annotations

import os

# `tox -e clients` names a folder with clients.
collect_ignore = [] if os.environ.get("PYTEST_LOOP_CLIENTS") else ["test_real_clients.py"]
