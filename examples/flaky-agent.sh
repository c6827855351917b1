#!/bin/sh
# Stands in for an agent's command line: fails as real ones do, then works.
case "${BACKSTOP_ATTEMPT:-1}" in
1)
  echo 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}' >&2
  exit 1
  ;;
2)
  echo "Error: 429 Rate limit reached for requests. Please try again in 1.5s." >&2
  exit 1
  ;;
3)
  echo "edit failed: oldString not found in src/lib.rs" >&2
  exit 1
  ;;
*)
  echo "Done: 3 files changed. (I was told: ${BACKSTOP_INJECT:-nothing})"
  ;;
esac
