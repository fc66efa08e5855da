#!/bin/bash
# tests/test.sh of a Harbor or terminal-bench task: scores what the agent left in the workspace against the commit it started from.
# Without a reward (the server crashed, the agent changed the checker's configuration) there is no reward.json, and Harbor reports an
# error of the trial instead of a reward.
set -u
lanser -C "${WORKSPACE:-/app}" --offline score --base "rev:${BASE:?the commit that the agent started from}" --head WORKTREE \
  --rewards-json "${VERIFIER_LOGS:-/logs/verifier}/reward.json"
