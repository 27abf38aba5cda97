#!/usr/bin/env bash
# One virtual environment for each peer, under $PERF_BASE/venvs (by default in the temporary folder).
#
#   benchmarks/install_peers.sh [NAME …]     all of them by default
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
  for one in $name; do
    if [ -z "${packages[$one]:-}" ]; then
      echo "$one: not a peer; choose from ${!packages[*]}" >&2
      failed=1
      continue
    fi
    [ -x "$one/bin/python" ] || python3 -m venv "$one"
    # shellcheck disable=SC2086  (several packages)
    if "./$one/bin/python" -m pip -q install ${packages[$one]}; then
      echo "$one ready"
    else
      echo "$one failed" >&2
      failed=1
    fi
  done
done
exit $failed
