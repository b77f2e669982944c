#!/usr/bin/env bash
# Write OUT/comment.md into the comment of the pull request NUMBER, or into the one that an earlier run wrote.
set -euo pipefail
if [ -n "${REPORT_URL:-}" ]; then
  sed -i "s|^REPORT\$|[The report]($REPORT_URL)|" "$OUT/comment.md"
else
  sed -i '/^REPORT$/d' "$OUT/comment.md"
fi
if [ "$COMMENT" != true ] || [ -z "${NUMBER:-}" ]; then exit 0; fi

write_comment() {
  local comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments" earlier
  earlier=$(gh api --paginate "$comments" --jq '.[] | select(.body | startswith("<!-- pytest-loop -->")) | .id' | head -n 1) || return
  if [ -n "$earlier" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$earlier" --field body=@"$OUT/comment.md"
  else
    gh api --method POST "$comments" --field body=@"$OUT/comment.md"
  fi
}

# The rules decide whether the job passes: the token of a pull request from a fork only reads.
write_comment || echo "::warning title=pytest-loop::The comment cannot be written: it needs pull-requests write, which forks do not get."
