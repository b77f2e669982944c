#!/usr/bin/env bash
# Push the fix to a branch, and open a pull request: only if PULL_REQUEST asks for it and the rules pass.
set -euo pipefail
if [ "$PULL_REQUEST" != true ] || [ "$STATUS" != completed ] || [ -z "$DIFF" ]; then exit 0; fi
branch="loop/fix-$GITHUB_RUN_ID-$GITHUB_RUN_ATTEMPT"
git config user.name "github-actions[bot]"
git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
git -c core.hooksPath=/dev/null switch --quiet --create "$branch"
git add --all -- . ':!.loop' ':!.github' ':(exclude,glob)**/__pycache__/**'
# Hooks that an agent has planted must not meet the token; it may also have committed everything itself.
if ! git diff --cached --quiet; then git -c core.hooksPath=/dev/null commit --quiet --message "$TASK"; fi
gh auth setup-git
git -c core.hooksPath=/dev/null push --quiet origin "$branch"
title=$(head -n 1 <<<"$TASK" | cut -c 1-200)
gh pr create --base "${GITHUB_HEAD_REF:-$GITHUB_REF_NAME}" --head "$branch" --title "$title" --body-file "$OUT/comment.md"
