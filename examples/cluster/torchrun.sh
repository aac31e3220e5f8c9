#!/bin/sh
# Starts the run by torchrun. On one machine: `sh examples/cluster/torchrun.sh`. On two: on each machine
#   NODES=2 NODE=0 MASTER_ADDR=node0 sh examples/cluster/torchrun.sh        (NODE=1 on the other one)
# with PIPER_RUN_TOKEN or PIPER_RUN_TOKEN_FILE set on both (README.md).
set -eu
exec torchrun --nnodes "${NODES:-1}" --node-rank "${NODE:-0}" --nproc-per-node "${PROCESSES:-4}" \
    --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" \
    --no-python piper train "$(dirname "$0")/cluster.pipe" "$@"
