"""Whether this machine can keep sealed files read-only."""

from __future__ import annotations

import pytest

from pytest_loop.processes.fence import FenceTool, probe_tools

CAN_MOUNT = (probe_tools().tool or FenceTool.LANDLOCK).has_mounts
needs_fence = pytest.mark.skipif(not CAN_MOUNT, reason="no fence with mounts works here")
