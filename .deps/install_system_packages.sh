#!/bin/sh
# Installs the missing system packages of packages.txt, or of the given list (Debian; as root or through sudo). If it may not install, it lists the missing
# packages and fails.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
wanted=$(grep -v '^#' "${1:-$here/packages.txt}")

if [ "${PIPER_SKIP_SYSTEM_PACKAGES:-}" = 1 ]; then
    exit 0
fi
if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "set-up: this system has no dpkg; install the counterparts of these Debian 12 packages," >&2
    echo "set-up: then run again with PIPER_SKIP_SYSTEM_PACKAGES=1:" $wanted >&2
    exit 1
fi

# A package that is unknown to dpkg makes it exit with 1: the list it prints is what counts.
present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' || true)
missing=
for package in $wanted; do
    case "
$present
" in
    *"
$package
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root="env"
elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    sudo true  # a password is asked for here, before apt-get runs in the background
    as_root="sudo env"
else
    echo "set-up: these packages are missing and this user may not install them:" >&2
    echo "    apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

echo "set-up: installing system packages:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $as_root DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 &
    running=$!
    seconds=0
    while kill -0 "$running" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        [ $((seconds % 15)) -ne 0 ] || echo "set-up:   apt-get $1: $(tail -n 1 "$log" | cut -c 1-90) ($seconds s)"
    done
    if ! wait "$running"; then
        tail -n 30 "$log" >&2
        echo "set-up: \`apt-get $*\` failed" >&2
        exit 1
    fi
}
apt update
apt install -y --no-install-recommends $missing
echo "set-up: system packages installed"
