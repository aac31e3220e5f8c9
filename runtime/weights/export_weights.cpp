#include "runtime/weights/export_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <string_view>
#include <utility>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/json.h"
#include "runtime/checkpoint/weight_index.h"
#include "runtime/weights/config.h"
#include "runtime/weights/coverage.h"
#include "runtime/weights/partial_output.h"

namespace piper::runtime {
namespace {

/// A part of a tensor of the export.
struct Part {
  StridedCopy copy;  // from the parameter to the tensor
  const StoredWeight* weight = nullptr;
};

struct ExportedTensor {
  StoredTensor stored;
  std::vector<Part> parts;
};

struct PlannedFile {
  std::string name;
  std::string header;
  std::vector<ExportedTensor> tensors;
  std::uint64_t bytes() const {
    return header.size() + (tensors.empty() ? 0 : tensors.back().stored.end);
  }
};

/// The tensors that a map makes of the weights, sorted by name.
std::vector<ExportedTensor> exported_tensors(std::span<const StoredWeight> weights,
                                             const WeightMap& map, StoredType type) {
  std::map<std::string_view, const StoredWeight*> by_name;
  for (const StoredWeight& weight : weights) by_name.emplace(weight.name, &weight);
  std::map<std::string_view, ExportedTensor> tensors;
  for (const MappedWeight& weight : map.weights) {
    ExportedTensor& tensor = tensors[weight.tensor];
    tensor.stored.name = weight.tensor;
    tensor.stored.type = type;
    tensor.stored.dims = weight.tensor_dims;
    tensor.parts.push_back({parameter_to_tensor(weight), by_name.at(weight.parameter)});
  }
  std::vector<ExportedTensor> sorted;
  for (auto& [name, tensor] : tensors) sorted.push_back(std::move(tensor));
  return sorted;
}

/// Distributes tensors over as many files as they need: a file has at most this much data, or one
/// tensor.
std::vector<PlannedFile> plan_files(std::vector<ExportedTensor> tensors,
                                    std::uint64_t max_file_bytes) {
  std::vector<PlannedFile> files(1);
  std::uint64_t at = 0;
  for (ExportedTensor& tensor : tensors) {
    const std::uint64_t bytes = stored_bytes(tensor.stored.type, tensor.stored.dims).value();
    if (at > 0 && bytes > max_file_bytes - std::min(at, max_file_bytes)) {
      files.emplace_back();
      at = 0;
    }
    tensor.stored.begin = at;
    tensor.stored.end = at += bytes;
    files.back().tensors.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::vector<StoredTensor> stored;
    for (const ExportedTensor& tensor : files[i].tensors) stored.push_back(tensor.stored);
    files[i].name = shard_name("model", i, files.size());
    files[i].header = safetensors_header(stored, {{"format", "pt"}});
  }
  return files;
}

std::string index_of(std::span<const PlannedFile> files) {
  WeightIndex index;
  for (const PlannedFile& file : files) {
    for (const ExportedTensor& tensor : file.tensors) index.add(tensor.stored, file.name);
  }
  return index.text();
}

class Exporter {
 public:
  explicit Exporter(const ExportOptions& options)
      : options_(options), copier_(options.window_bytes) {
    block_.type = options.dtype;
  }

  bool stopped() const { return options_.stopped && options_.stopped(); }

  std::optional<Failure> write(const PlannedFile& file, const std::string& path) {
    WrittenFile out;
    int error = out.create(path);
    if (error == 0) error = out.write(0, file.header.data(), file.header.size());
    if (error != 0) return unwritable_output(options_.path, std::strerror(error));
    for (const ExportedTensor& tensor : file.tensors) {
      if (auto failure = write(tensor, file.header.size() + tensor.stored.begin, out))
        return failure;
      if (stopped()) return std::nullopt;
    }
    error = out.finish();
    if (error != 0) return unwritable_output(options_.path, std::strerror(error));
    return std::nullopt;
  }

  std::optional<Failure> write_text(const std::string& path, const std::string& text) const {
    WrittenFile out;
    int error = out.create(path);
    if (error == 0) error = out.write(0, text.data(), text.size());
    if (error == 0) error = out.finish();
    if (error != 0) return unwritable_output(options_.path, std::strerror(error));
    return std::nullopt;
  }

 private:
  std::optional<Failure> write(const ExportedTensor& tensor, std::uint64_t position,
                               WrittenFile& out) {
    const std::uint64_t element = stored_type_bytes(options_.dtype),
                        elements = (tensor.stored.end - tensor.stored.begin) / element,
                        at_once = std::max<std::uint64_t>(options_.block_bytes / element, 1);
    for (std::uint64_t begin = 0; begin < elements && !stopped(); begin += at_once) {
      const std::uint64_t end = std::min(begin + at_once, elements);
      block_.begin = begin;
      block_.resize(end - begin);
      for (const Part& part : tensor.parts) {
        if (auto failure = fill(part, begin, end)) return failure;
      }
      const int error =
          out.write(position + begin * element, block_.bytes.data(), block_.bytes.size());
      if (error != 0) return unwritable_output(options_.path, std::strerror(error));
    }
    return std::nullopt;
  }

  std::optional<Failure> fill(const Part& part, std::uint64_t begin, std::uint64_t end) {
    std::optional<Failure> failure;
    for_boxes_within(part.copy, begin, end, [&](const StridedCopy& box) {
      if (!failure) failure = copier_.copy(box, part.weight->source, block_);
    });
    if (failure || !copier_.out_of_range) return failure;
    std::string value;
    append_json_number(value, copier_.out_of_range->value);
    return Failure{.code = kWeightOutOfRange,
                   .message = "the value `" + value + "` of " + shown_name(part.weight->name) +
                              " is beyond the range of " +
                              std::string(stored_type_name(options_.dtype)),
                   .hint = "export in another type: `--dtype bf16` has the range of `f32`"};
  }

  const ExportOptions& options_;
  ElementCopier copier_;
  ElementBlock block_;
};

/// Writes the files, and commits them.
std::optional<Failure> write_all(std::span<const PlannedFile> files, const WeightMap& map,
                                 const ExportOptions& options, bool one_file,
                                 ExportReport& report) {
  Failure failure;
  auto output = one_file ? PartialOutput::create_file(options.path, failure)
                         : PartialOutput::create_folder(options.path, failure);
  if (!output) return failure;
  Exporter exporter(options);
  const auto inside = [&](const std::string& name) { return output->path() + "/" + name; };
  std::vector<ExportedFile> written;
  for (const PlannedFile& file : files) {
    if (auto wrong = exporter.write(file, one_file ? output->path() : inside(file.name)))
      return wrong;
    if (exporter.stopped()) return std::nullopt;
    written.push_back({one_file ? options.path : file.name, file.bytes()});
  }
  if (files.size() > 1) {
    if (auto wrong = exporter.write_text(inside(kIndexName), index_of(files))) return wrong;
  }
  if (!one_file && !map.config.empty()) {
    if (auto wrong = exporter.write_text(inside("config.json"), config_json(map.config)))
      return wrong;
  }
  if (auto wrong = output->commit()) return wrong;
  report.files = std::move(written);
  return std::nullopt;
}

}  // namespace

std::optional<Failure> check_coverage(const WeightMap& map) {
  std::map<std::string_view, Coverage> tensors;
  for (const MappedWeight& weight : map.weights) {
    std::uint64_t elements = 1;
    for (const std::int64_t dim : weight.tensor_dims) elements *= static_cast<std::uint64_t>(dim);
    tensors.try_emplace(weight.tensor, elements)
        .first->second.add(parameter_to_tensor(weight), weight.parameter);
  }
  for (auto& [name, tensor] : tensors) {
    if (const auto fault = tensor.fault())
      return Failure{
          .code = kMapIncomplete,
          .message = "the names do not fill " + shown_name(name) + " exactly once: " + *fault,
          .hint = "name a parameter for each of its elements, and one alone"};
  }
  return std::nullopt;
}

std::vector<ParameterShape> shapes_of(std::span<const StoredWeight> weights) {
  std::vector<ParameterShape> shapes;
  for (const StoredWeight& weight : weights) shapes.push_back({weight.name, weight.dims});
  return shapes;
}

std::optional<Failure> export_weights(std::span<const StoredWeight> weights, const WeightMap& map,
                                      const ExportOptions& options, ExportReport& report) {
  report = {};
  for (const StoredWeight& weight : weights) {
    // A checkpoint that Piper has not written.
    if (is_weight_type(weight.source.type) &&
        std::find(weight.dims.begin(), weight.dims.end(), 0) == weight.dims.end())
      continue;
    return Failure{.code = kWeightsUnreadable,
                   .message = "cannot export " + shown_name(weight.name) +
                              ": it has no numbers of " + "a type of weights",
                   .hint = "weights are F64, F32, F16 or BF16, and have elements"};
  }
  try {
    if (auto wrong = check_map(map, shapes_of(weights))) return wrong;
    if (auto wrong = check_coverage(map)) return wrong;
    std::vector<ExportedTensor> tensors = exported_tensors(weights, map, options.dtype);
    report.parameters = weights.size();
    report.tensors = tensors.size();
    const bool one_file = options.path.ends_with(".safetensors");
    const std::vector<PlannedFile> files =
        plan_files(std::move(tensors), one_file ? UINT64_MAX : options.max_file_bytes);
    for (const PlannedFile& file : files) {
      if (file.header.size() > kMaxSafetensorsHeader)
        return unwritable_output(options.path, "a header of so many tensors is too long");
    }
    return write_all(files, map, options, one_file, report);
  } catch (const std::bad_alloc&) {
    return Failure{.code = kOutOfMemory, .message = "no memory for the buffers of an export"};
  }
}

}  // namespace piper::runtime
