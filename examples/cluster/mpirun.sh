#!/bin/sh
# Starts eight processes on the machines of `hostfile` by Open MPI, which only starts them: the messages are UCX's. Rank 0 is on the first machine.
set -eu
here=$(dirname "$0")
first=$(sed -n '1s/ .*//p' "$here/hostfile")
exec mpirun -n 8 --hostfile "$here/hostfile" -x MASTER_ADDR="$first" -x MASTER_PORT="${MASTER_PORT:-29500}" \
    piper train "$here/cluster.pipe" "$@"
