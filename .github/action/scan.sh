#!/usr/bin/env bash
# Scans what the inputs say, writes summary and outputs, and always ends well: `exit-code` tells
# how the scan went. Runs on macOS' bash 3.2 too, so there are no name references or mapfile, and
# an array that may be empty is never expanded bare under -u.
set -uo pipefail

# finish CODE [MESSAGE]: write the outputs and end.
finish() {
  local verdicts=(passed findings failed incomplete)
  if [ -n "${2:-}" ]; then
    echo "::error title=opscan::$2"
  fi
  {
    echo "exit-code=$1"
    echo "verdict=${verdicts[$1]:-failed}"
  } >>"$GITHUB_OUTPUT"
  exit 0
}

# read_lines TEXT: the lines of TEXT that are not blank, stripped, in the array `lines`.
read_lines() {
  local line
  lines=()
  while IFS= read -r line || [ -n "$line" ]; do
    line="${line#"${line%%[![:space:]]*}"}"
    line="${line%"${line##*[![:space:]]}"}"
    case "$line" in
      "") continue ;;
      -*) finish 2 "an input begins with a dash, which opscan would take for an option: $line" ;;
    esac
    lines+=("$line")
  done <<<"$1"
}

options=(--format github --fail-on "${ACTION_FAIL_ON:-error}")
read_lines "${ACTION_TARGET:-}"
for target in ${lines[@]+"${lines[@]}"}; do options+=(--target "$target"); done
read_lines "${ACTION_BASELINE:-}"
for baseline in ${lines[@]+"${lines[@]}"}; do options+=(--baseline "$baseline"); done
if [ "${ACTION_STATIC:-}" = "true" ]; then options+=(--static); fi
if [ "${ACTION_ALLOW_INCOMPLETE:-}" = "true" ]; then options+=(--allow-incomplete); fi
read_lines "${ACTION_MODELS:-}"
if [ "${#lines[@]}" -eq 0 ]; then
  finish 2 "the input models names nothing to scan"
fi

folder="$(mktemp -d "${RUNNER_TEMP:-/tmp}/opscan.XXXXXX")"
opscan scan "${options[@]}" \
  --report "json=$folder/opscan.json" \
  --report "sarif=$folder/opscan.sarif" \
  --report "markdown=$folder/opscan.md" \
  "${lines[@]}"
code=$?

if [ -f "$folder/opscan.md" ]; then
  cat "$folder/opscan.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
if [ -f "$folder/opscan.json" ]; then
  {
    python - "$folder/opscan.json" <<'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    summary = json.load(file)["summary"]
print(f"errors={summary['errors']}")
print(f"warnings={summary['warnings']}")
PYTHON
    echo "report=$folder/opscan.json"
    echo "sarif=$folder/opscan.sarif"
  } >>"$GITHUB_OUTPUT"
fi
finish "$code"
