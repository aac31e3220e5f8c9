#include <algorithm>
#include <set>

#include "runtime/checkpoint/checkpoint.h"

namespace piper::runtime {
namespace {

/// The maximum number of differences in a message.
constexpr std::size_t kShown = 6;

/// `f32[64, 256]`.
std::string type_text(const StoredTensor& tensor) {
  std::string text = std::string(stored_type_name(tensor.type)) + "[";
  for (std::size_t d = 0; d < tensor.dims.size(); ++d)
    text += (d ? ", " : "") + std::to_string(tensor.dims[d]);
  return text + "]";
}

class Differences {
 public:
  void add(std::string text) {
    ++count_;
    if (notes_.size() < kShown) notes_.push_back({.text = std::move(text)});
  }
  void fact(const char* name, const std::string& then, const std::string& now) {
    if (then != now)
      add(std::string("its ") + name + " is `" + then + "`, and that of this train is `" + now +
          "`");
  }

  std::optional<Failure> failure(const std::string& folder, Restored restored) && {
    if (count_ == 0) return std::nullopt;
    if (count_ > notes_.size())
      notes_.push_back({.text = std::to_string(count_ - notes_.size()) + " more differ"});
    return Failure{.code = kCheckpointDiffers,
                   .message = restored == Restored::all
                                  ? "`" + folder + "` is a checkpoint of another training"
                                  : "`" + folder + "` has other parameters than this model",
                   .hint = restored == Restored::all
                               ? "take only the parameters, `--only weights`, or resume the train "
                                 "that wrote it"
                               : "resume the model that wrote it",
                   .notes = std::move(notes_)};
  }

 private:
  std::vector<Note> notes_;
  std::size_t count_ = 0;
};

}  // namespace

std::optional<Failure> Checkpoint::compare(const RankParameters& parameters, const Manifest& run,
                                           Restored restored) const {
  Differences differences;
  const bool all = restored == Restored::all;
  if (all) {
    differences.fact("optimizer", manifest_.optimizer, run.optimizer);
    differences.fact("dtype", manifest_.dtype, run.dtype);
    differences.fact("seed", std::to_string(manifest_.seed), std::to_string(run.seed));
    differences.fact("data", manifest_.data, run.data);
  }
  // The state of another optimizer differs in every tensor: that it is another one is enough.
  const bool optimizer = all && manifest_.optimizer == run.optimizer;
  const StateLayout layout = state_layout(parameters);
  std::set<std::string_view> expected;
  const bool averages =
      std::any_of(layout.tensors.begin(), layout.tensors.end(),
                  [](const StateTensor& tensor) { return tensor.part == StatePart::average; });
  for (const StateTensor& tensor : layout.tensors) {
    if (!optimizer && tensor.part != StatePart::values) continue;
    expected.insert(tensor.stored.name);
    const auto found = tensors_.find(tensor.stored.name);
    if (tensor.part == StatePart::average && !has_averages()) continue;
    if (found == tensors_.end()) {
      differences.add("it has no `" + tensor.stored.name + "`");
      continue;
    }
    const StoredTensor& stored = found->second.stored;
    const bool type_fits = all ? stored.type == tensor.stored.type
                               : dtype_of(stored.type) && stored.type != StoredType::i64;
    if (stored.dims != tensor.stored.dims || !type_fits)
      differences.add("`" + tensor.stored.name + "` is " + type_text(stored) +
                      ", and that of this model is " + type_text(tensor.stored));
  }
  for (const auto& [key, tensor] : tensors_) {
    if (key.starts_with(kAverageKey) && !averages) continue;
    if (optimizer && !expected.contains(key)) differences.add("it also has `" + key + "`");
  }
  return std::move(differences).failure(folder_, restored);
}

}  // namespace piper::runtime
