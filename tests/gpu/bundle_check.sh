#!/bin/sh
# ./check.sh in the folder of the bundle: checks that everything in it runs on this machine, with its GPU or without. It takes a minute; the last line gives the
# result.
set -u
. ./env.sh || exit 1
out=${1:-$(mktemp -d)}
mkdir -p "$out"
failed=""
part() {
  name=$1
  shift
  echo "== $name: $*"
  "$@" >"$out/$name.txt" 2>&1 || failed="$failed $name"
  tail -n 12 "$out/$name.txt" | cut -c1-200
}
part doctor piper doctor
part train_on_the_cpu piper train examples/mlp/mlp.pipe --steps 20 --out "$out/mlp"
head -c 40000 bench/measurements.py >"$out/text.txt"
part gpt_on_the_cpu piper train examples/gpt/gpt.pipe -D corpus="$out/text.txt" -D held_out="$out/text.txt" --steps 1
part cuda_kernels piper build examples/gpt/gpt.pipe -D corpus="$out/text.txt" -D held_out="$out/text.txt" --device cuda -o "$out/kernels"
part gpu_test gpu_test --gtest_filter='GpuLaws.OneRank:Device*:Gpu.NcclWithOneRank'
part gpu_kernel_test gpu_kernel_test --gtest_filter='*Update*'
part bench_form python3 -B bench/bench_gpu.py --piper bin/piper --out "$out/bench" --device cpu --tiny --parts launches,fused_bf16,gpt_bf16
if [ -n "$failed" ]; then
  echo "check.sh: failed:$failed; what they said is in $out"
  exit 1
fi
echo "check.sh: everything runs; GPU tests above that are skipped say why"
