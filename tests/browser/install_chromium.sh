#!/bin/sh
# Browsers for the browser tests: the machine's own, else Debian's, else Playwright's. The headless shell, which is the same
# browser without its windows, takes a third of the time and runs nearly all of them; where it cannot be had, the whole one does.
set -eu
has() {
    for name in "$@"; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}
debian() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || return 1
    echo "installing Debian's $1 for the browser tests"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}
has chromium-headless-shell || debian chromium-headless-shell || true
has chromium chromium-browser google-chrome google-chrome-stable || debian chromium && exit 0
echo "installing Playwright's chromium for the browser tests"
"$1" -m playwright install chromium
