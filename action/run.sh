#!/usr/bin/env bash
# Judge once, or run a task, and keep result, report, patch and exit code in the folder OUT. Always ends with 0.
set -uo pipefail
rm -rf "$OUT" # an earlier step of the job may have used the action
mkdir -p "$OUT"
read -r -a arguments <<<"$ARGUMENTS"
read -r -a rules <<<"$RULES"
start=$(git rev-parse HEAD)
untracked=$(git -c core.quotePath=off ls-files --others --exclude-standard --full-name :/ | sed 's/[][*?\\]/\\&/g; s|^|/|')
if [ -n "$TASK" ]; then
  words=(--loop-task "$TASK" --loop-yes --loop-json "$OUT/result.json" --loop-report "$OUT/report.html")
  words+=(--loop-max-iterations "$MAX_ITERATIONS" --loop-limit "$BUDGET USD, $MAX_SECONDS s")
  if [ -n "$AGENT" ]; then words+=(--loop-agent "$AGENT"); fi
  for rule in "${rules[@]}"; do words+=(--loop-rules "$rule"); done
else
  words=(--junitxml "$OUT/junit.xml" "${rules[@]}")
fi
python -m pytest "${words[@]}" "${arguments[@]}"
echo $? >"$OUT/exit-code"
# Files of the installation, such as build/, are no part of a fix either; they are excluded for the next steps too.
printf '%s\n' "$untracked" >>"$(git rev-parse --git-path info/exclude)"
# Workflows are never part of a fix, and neither are files that only Python needs.
paths=(-- . ':!.loop' ':!.github' ':(exclude,glob)**/__pycache__/**')
git add --all --intent-to-add "${paths[@]}"
git diff --binary --no-color --no-ext-diff "$start" "${paths[@]}" >"$OUT/change.diff"
git diff --stat --no-color "$start" "${paths[@]}" >"$OUT/diffstat.txt"
