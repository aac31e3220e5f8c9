#include "runtime/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/processes/process_group.h"

namespace piper::runtime {
namespace {

/// The bytes that one process may send of its sums.
constexpr std::uint64_t kMaxSums = std::uint64_t{1} << 28;
/// Bytes that are written and summed at once, while they are in the cache of the processor.
constexpr std::uint64_t kWrittenAtOnce = std::uint64_t{1} << 20;

}  // namespace

CheckpointWriter::CheckpointWriter(StateMemory memory, CheckpointOptions options)
    : memory_(std::move(memory)),
      options_(std::move(options)),
      parameters_(memory_.ranks),
      layout_(state_layout(parameters_, options_.max_file_bytes)),
      snapshot_(parameters_, layout_, memory_) {}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

bool CheckpointWriter::first() const {
  return memory_.group == nullptr || memory_.group->launch().rank == 0;
}

std::string CheckpointWriter::folder(std::uint64_t step) const {
  return options_.out_folder + "/" + step_folder(step);
}

std::optional<Failure> CheckpointWriter::wait() {
  if (thread_.joinable()) thread_.join();
  return failure_;
}

std::optional<Failure> CheckpointWriter::save(std::uint64_t step,
                                              std::optional<double> held_out_loss) {
  if (auto failure = wait()) return failure;
  if (last_ == step) return std::nullopt;
  if (auto failure = snapshot_.take()) return failure;
  last_ = step;
  Manifest manifest = options_.run;
  manifest.step = step;
  manifest.samples = step * manifest.batch;
  manifest.updates = step + static_cast<std::uint64_t>(options_.further_updates);
  if (held_out_loss && std::isfinite(*held_out_loss)) manifest.held_out_loss = held_out_loss;
  try {
    thread_ = std::thread([this, manifest] { write(manifest); });
  } catch (const std::system_error&) {
    write(manifest);  // training waits
  }
  return std::nullopt;
}

std::optional<Failure> CheckpointWriter::finish() {
  if (auto failure = wait()) return failure;
  // The others leave when rank 0 has committed the last checkpoint.
  if (memory_.group != nullptr && last_ && !memory_.group->any(false))
    return memory_.group->failure();
  return std::nullopt;
}

void CheckpointWriter::write(const Manifest& manifest) {
  try {
    failure_ = write_all(manifest);
  } catch (const std::bad_alloc&) {
    failure_ = Failure{.code = kOutOfMemory, .message = "no memory to write a checkpoint"};
  }
  if (!failure_) return;
  if (memory_.group != nullptr) memory_.group->fail(*failure_);
  std::error_code ignored;
  if (first())
    std::filesystem::remove_all(options_.out_folder + "/" + partial_folder(manifest.step), ignored);
}

std::optional<Failure> CheckpointWriter::write_all(const Manifest& manifest) {
  PartialFolder folder;
  if (auto failure = folder.open(options_.out_folder, manifest.step)) return failure;
  std::vector<PartSum> sums;
  if (auto failure = write_parts(folder, sums)) return failure;
  if (!first()) {
    memory_.group->send_bytes(Channel::checkpoint, sums_as_bytes(sums));
    return std::nullopt;
  }
  if (auto failure = receive_parts(sums)) return failure;
  return commit(manifest, folder, std::move(sums));
}

/// Writes the bytes of this process, and on rank 0 the headers.
std::optional<Failure> CheckpointWriter::write_parts(const PartialFolder& folder,
                                                     std::vector<PartSum>& sums) {
  auto segment = snapshot_.segments().begin();
  for (std::size_t f = 0; f < layout_.files.size(); ++f) {
    const std::string& name = layout_.files[f].name;
    const std::string& header = layout_.files[f].header;
    WrittenFile file;
    int error = file.open(folder, name, layout_.files[f].bytes);
    const auto put = [&](std::uint64_t position, const void* data, std::uint64_t bytes) {
      if (error == 0) error = file.write(position, data, bytes);
      if (error == 0) add_sums(f, position, data, bytes, sums);
    };
    if (first()) put(0, header.data(), header.size());
    for (; segment != snapshot_.segments().end() && segment->file == f; ++segment) {
      for (std::uint64_t at = 0; at < segment->bytes && error == 0; at += kWrittenAtOnce)
        put(segment->position + at, snapshot_.data(*segment) + at,
            std::min(kWrittenAtOnce, segment->bytes - at));
    }
    if (error == 0) error = file.finish();
    if (error != 0) return unwritable_checkpoint(folder.path() + "/" + name, error);
  }
  return std::nullopt;
}

/// Adds the sums of all other processes.
std::optional<Failure> CheckpointWriter::receive_parts(std::vector<PartSum>& sums) {
  if (memory_.group == nullptr) return std::nullopt;
  for (std::uint32_t from = 1; from < memory_.group->launch().world; ++from) {
    const auto bytes = memory_.group->receive_bytes(Channel::checkpoint, from, kMaxSums);
    if (!bytes) return memory_.group->failure();
    const auto received = sums_from_bytes(*bytes);
    if (!received)
      return memory_.group->fail_message(from, "its checksums of a checkpoint are malformed");
    sums.insert(sums.end(), received->begin(), received->end());
  }
  return std::nullopt;
}

std::optional<Failure> CheckpointWriter::write_text(const PartialFolder& folder,
                                                    const std::string& name,
                                                    const std::string& text) {
  WrittenFile file;
  int error = file.open(folder, name, text.size());
  if (error == 0) error = file.write(0, text.data(), text.size());
  if (error == 0) error = file.finish();
  if (error != 0) return unwritable_checkpoint(folder.path() + "/" + name, error);
  return std::nullopt;
}

std::optional<Failure> CheckpointWriter::commit(Manifest manifest, PartialFolder& folder,
                                                std::vector<PartSum> sums) {
  for (const StateFile& file : layout_.files) manifest.files.push_back({file.name, file.bytes, {}});
  if (!combine_sums(std::move(sums), manifest.files))
    return Failure{.code = kBadJob,
                   .message = "the parts of a checkpoint do not cover its files exactly once"};
  if (!layout_.index.empty()) {
    if (auto failure = write_text(folder, kIndexName, layout_.index)) return failure;
  }
  if (auto failure = write_text(folder, kManifestName, manifest_json(manifest))) return failure;
  if (auto failure = folder.commit(this->folder(manifest.step))) return failure;
  if (const int error = sync_folder(options_.out_folder))
    return unwritable_checkpoint(options_.out_folder, error);
  const auto best =
      options_.best && options_.keep > 0 ? best_checkpoint(options_.out_folder) : std::nullopt;
  return remove_old_checkpoints(options_.out_folder, options_.keep, best);
}

}  // namespace piper::runtime
