#!/bin/sh
#SBATCH --job-name=piper
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --time=00:30:00
# Submit it from the root of the tree: `sbatch examples/cluster/slurm.sh`. Slurm sets the rank and the world; rank 0 is on the first node.
set -eu
# A token for this job alone. `srun` passes the environment on to its tasks.
PIPER_RUN_TOKEN=$(head -c 32 /dev/urandom | base64)
export PIPER_RUN_TOKEN
exec srun --kill-on-bad-exit=1 piper train examples/cluster/cluster.pipe --out "run-$SLURM_JOB_ID" "$@"
