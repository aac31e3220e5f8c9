#!/bin/sh
# make_bundle.sh BUILD BUNDLE: packs all that a GPU machine without network and without this tree's packages needs, as the folder BUNDLE and as BUNDLE.tar.gz.
set -eu
build=$1 bundle=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
most_mib=64

rm -rf "$bundle" "$bundle.tar.gz"
mkdir -p "$bundle/bin" "$bundle/lib"
for program in piper piper_torch_plugin.so gpu_test gpu_kernel_test; do
  strip -o "$bundle/bin/$program" "$build/$program"
done
# A machine with older ones, or without, takes these (env.sh).
for library in libstdc++.so.6 libgcc_s.so.1 libz.so.1 libzstd.so.1; do
  cp -L "$(ldd "$build/piper" | awk -v name="$library" '$1 == name { print $3 }')" "$bundle/lib/$library"
done
cp -R "$root/examples" "$bundle/examples"
mkdir "$bundle/bench"
cp "$root"/tests/gpu/bench/*.py "$root"/tests/gpu/bench/*.pipe "$bundle/bench"
cp "$root/tests/gpu/bundle_env.sh" "$bundle/env.sh"
cp "$root/tests/gpu/bundle_check.sh" "$bundle/check.sh"
cp "$root/tests/gpu/bundle_first_minutes.sh" "$bundle/first_minutes.sh"
cp "$root/tests/gpu/first_minutes.py" "$bundle"
cp "$root/CMakePresets.json" "$bundle"  # tests take the folder with this file as the project root
cp "$root/tests/gpu/README.md" "$bundle/README.md"
(cd "$root" && git log -1 --format='%H %cs%n' && git status --short --untracked-files=no) >"$bundle/VERSION" 2>/dev/null || echo "not from a repository" >"$bundle/VERSION"

tar -C "$(dirname "$bundle")" -czf "$bundle.tar.gz" "$(basename "$bundle")"
mib=$(du -sm "$bundle" | cut -f1)
if [ "$mib" -gt "$most_mib" ]; then
  echo "gpu-bundle: $bundle has $mib MiB, more than $most_mib" >&2
  exit 1
fi
echo "gpu-bundle: $bundle, $mib MiB; $bundle.tar.gz, $(du -m "$bundle.tar.gz" | cut -f1) MiB"
