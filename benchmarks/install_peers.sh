#!/usr/bin/env bash
# Creates one virtual environment for each peer, under $PERF_BASE/venvs (default: in the temporary folder).
#
#   benchmarks/install_peers.sh [NAME …]     default: all
set -u
base=${PERF_BASE:-$(python3 -c 'import tempfile; print(tempfile.gettempdir())')/palaver-bench}
mkdir -p "$base/venvs" && cd "$base/venvs" || exit 1

declare -A packages=(
  [adk]="google-adk sqlalchemy[asyncio] aiosqlite"
  [agno]="agno sqlalchemy[asyncio]"
  [hermes]="hermes-agent==0.19.0"
  [langgraph]="langgraph-checkpoint-sqlite"
  [langgraph_full]="langgraph langgraph-checkpoint-sqlite"
  [llm]="llm"
  [nanobot]="nanobot-ai"
  [openai_agents]="openai-agents sqlalchemy[asyncio] aiosqlite asyncpg"
)

failed=0
for name in "${@:-${!packages[@]}}"; do
  for peer in $name; do
    if [ -z "${packages[$peer]:-}" ]; then
      echo "$peer: unknown peer; choose from ${!packages[*]}" >&2
      failed=1
      continue
    fi
    [ -x "$peer/bin/python" ] || python3 -m venv "$peer"
    # shellcheck disable=SC2086  (several packages)
    if "./$peer/bin/python" -m pip -q install ${packages[$peer]}; then
      echo "$peer is ready"
    else
      echo "$peer could not be installed" >&2
      failed=1
    fi
  done
done
exit $failed
