#!/usr/bin/env bash
# Install the project, and the plugin in the version of this action. INSTALL: words for pip, separated by spaces.
set -euo pipefail
read -r -a words <<<"$INSTALL"
python -m pip install --quiet "${words[@]}" "$GITHUB_ACTION_PATH"
