# `. ./env.sh` in the folder of the bundle: finds LibTorch and the libraries of CUDA of a `python3` with PyTorch, unless PIPER_TORCH_PATH and PIPER_CUDA_PATH
# name them.
bundle=$PWD
if [ ! -x "$bundle/bin/piper" ]; then
  echo "env.sh: go to the bundle's folder first" >&2
  return 1
fi
if [ -z "${PIPER_TORCH_PATH:-}" ]; then
  PIPER_TORCH_PATH=$(python3 -c 'import importlib.util as u; s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' 2>/dev/null || true)
  export PIPER_TORCH_PATH
fi
# Without PyTorch no path is set: an empty path followed by `/lib` would be the machine's own folder.
[ -n "$PIPER_TORCH_PATH" ] || unset PIPER_TORCH_PATH
[ -d "${PIPER_TORCH_PATH:-/nowhere}/torch/lib" ] && PIPER_TORCH_PATH=$PIPER_TORCH_PATH/torch
packages=$(dirname "${PIPER_TORCH_PATH:-/nowhere/torch}")
# All from one place: NVRTC, cuBLASLt and NCCL that fit each other and PyTorch. Without these wheels the toolkit in /usr/local/cuda is found by itself.
if [ -z "${PIPER_CUDA_PATH:-}" ] && ls "$packages"/nvidia/cu13/lib/libnvrtc.so.* >/dev/null 2>&1 && ls "$packages"/nvidia/cu13/lib/libcublasLt.so.* >/dev/null 2>&1; then
  export PIPER_CUDA_PATH="$packages"
fi
[ -d "${PIPER_TORCH_PATH:-/nowhere}/lib" ] && export LD_LIBRARY_PATH="$PIPER_TORCH_PATH/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$bundle/bin:$PATH"
# Only if the machine's own libraries do not work: newer ones there must not be hidden.
if ! piper --help >/dev/null 2>&1; then
  export LD_LIBRARY_PATH="$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  echo "env.sh: the libraries of the bundle are used, as the machine's own do not do"
fi
piper --help >/dev/null || return 1
echo "env.sh: LibTorch in ${PIPER_TORCH_PATH:-no place}, CUDA in ${PIPER_CUDA_PATH:-the toolkit, if there is one}"
