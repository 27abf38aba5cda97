#!/bin/sh
# Installs Chromium for the browser tests unless the machine has it: Debian's package, or else Playwright's build.
# Nearly all tests run in the headless shell (Chromium without windows), which takes a third of the time. Where it is not
# available, the full browser runs them.
set -eu
has_any() {
    for name in "$@"; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}
install_debian_package() {
    command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] || return 1
    echo "Installing Debian's $1 for the browser tests"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}
has_any chromium-headless-shell || install_debian_package chromium-headless-shell || true
has_any chromium chromium-browser google-chrome google-chrome-stable || install_debian_package chromium && exit 0
echo "Installing Playwright's chromium for the browser tests"
"$1" -m playwright install chromium
