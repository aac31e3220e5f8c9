#!/bin/sh
# Starts eight processes on the machines of `hostfile` by Open MPI, which only starts them: the messages are UCX's. Rank 0 is on the first machine.
# PIPER_RUN_TOKEN is passed on by its name, so the token is on no command line.
set -eu
: "${PIPER_RUN_TOKEN:?make a token: README.md}"
here=$(dirname "$0")
first=$(sed -n '1s/ .*//p' "$here/hostfile")
exec mpirun -n 8 --hostfile "$here/hostfile" -x MASTER_ADDR="$first" -x MASTER_PORT="${MASTER_PORT:-29500}" -x PIPER_RUN_TOKEN \
    piper train "$here/cluster.pipe" "$@"
