#!/usr/bin/env bash
# Install the project and the plugin. INSTALL: words for pip, separated by spaces.
set -euo pipefail
read -r -a words <<<"$INSTALL"
python -m pip install --quiet "${words[@]}" pytest-agent-loop
