#!/bin/sh
# Makes the extension: package.sh [FILE.vsix]. It needs Node 18 or later and npm; what it installs is pinned and stays in node_modules/.
set -eu

out=${1:-piper.vsix}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel error
    cp package-lock.json node_modules/.installed
fi
cp ../../LICENSE LICENSE
trap 'rm -f LICENSE' EXIT
node_modules/.bin/vsce package --no-dependencies --allow-missing-repository --out "$out"
