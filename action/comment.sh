#!/usr/bin/env bash
# Write OUT/comment.md into the comment of the pull request NUMBER, or into the one that an earlier run wrote.
set -euo pipefail
if [ -n "${REPORT_URL:-}" ]; then
  sed -i "s|^REPORT\$|[The report]($REPORT_URL)|" "$OUT/comment.md"
else
  sed -i '/^REPORT$/d' "$OUT/comment.md"
fi
if [ "$COMMENT" != true ] || [ -z "${NUMBER:-}" ]; then exit 0; fi
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"
earlier=$(gh api --paginate "$comments" --jq '.[] | select(.body | startswith("<!-- pytest-loop -->")) | .id' | head -n 1)
if [ -n "$earlier" ]; then
  gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$earlier" --field body=@"$OUT/comment.md"
else
  gh api --method POST "$comments" --field body=@"$OUT/comment.md"
fi
