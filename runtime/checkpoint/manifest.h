#pragma once
// The description of a checkpoint, `manifest.json`: where training stood, which run it belongs to,
// and the checksums of its files. It is written last: a folder without it is no checkpoint.
//
//   {"schema":1,"step":300,"samples":9600,"updates":300,"batch":32,"train":"gpt","seed":1,"dtype":"f32",
//    "optimizer":"adamw","rate":"cosine from 0.001 to 0.0001, warm-up of 20 of 400 steps","data":"bytes, windows of 128, 1115394 bytes, crc32 8a1b0c2d",
//    "held_out_loss":2.5,"files":[{"name":"model.safetensors","bytes":13212,"crc32":["a0b1c2d3"]}],"crc32":"4e5f6071"}
//
// The last member is the checksum of the text before it: a damaged digit of `step` would be legal.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

/// Checksums are those of pieces of this many bytes, from the start of a file: a reader verifies
/// what it reads.
inline constexpr std::uint64_t kCheckedBytes = std::uint64_t{4} << 20;

struct ManifestFile {
  std::string name = {};  // never a path
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> crc32 = {};  // of each piece, as zlib computes it
};

struct Manifest {
  std::uint64_t step = 0;     // training steps that have ended
  std::uint64_t samples = 0;  // of training data that were read
  // Updates of the parameters; it differs from `step` after a resume with another batch.
  std::uint64_t updates = 0;
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
  std::string train = {};                    // the name of the train
  std::string dtype = {};                    // of the parameters: `f32`
  std::string optimizer = {};                // its name
  std::string rate = {};                     // the learning rate over the steps
  std::string data = {};                     // a description with a fingerprint of the contents
  std::optional<double> held_out_loss = {};  // of its parameters; finite
  std::vector<ManifestFile> files = {};
};

std::string manifest_json(const Manifest& manifest);
/// Empty, with the reason in `error`, for anything that `manifest_json` does not write.
std::optional<Manifest> parse_manifest(std::string_view text, std::string& error);

}  // namespace piper::runtime
