#include "frontend/tools/checkpoint_view.h"

#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "frontend/pictures/text_table.h"
#include "frontend/source/write_file.h"
#include "frontend/tools/train_job.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/json.h"
#include "runtime/processes/peer_text.h"

namespace piper::tools {
namespace {

namespace fs = std::filesystem;
namespace json = llvm::json;

using Tensor = runtime::Checkpoint::Tensor;

std::uint64_t bytes_of(const Tensor& tensor) { return tensor.stored.end - tensor.stored.begin; }
std::uint64_t elements_of(const Tensor& tensor) {
  return bytes_of(tensor) / runtime::stored_type_bytes(tensor.stored.type);
}

/// A parameter with the tensors that the optimizer keeps for it, by the words before their names:
/// `ema`, `m`, `v`.
struct Parameter {
  const Tensor* values = nullptr;
  std::map<std::string_view, const Tensor*> optimizer;
};

/// The rows of a checkpoint, by name. A tensor of the optimizer without its parameter, which Piper
/// does not write, is a row by itself.
std::vector<Parameter> parameters_of(const runtime::Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.tensors();
  std::map<std::string_view, Parameter> rows;
  for (const auto& [key, tensor] : tensors) {
    const std::string_view name = key;
    const std::size_t slash = runtime::Checkpoint::is_weight(name) ? 0 : name.find('/');
    if (slash > 0 && tensors.contains(name.substr(slash + 1))) {
      rows[name.substr(slash + 1)].optimizer[name.substr(0, slash)] = &tensor;
    } else {
      rows[name].values = &tensor;
    }
  }
  std::vector<Parameter> parameters;
  for (auto& [name, parameter] : rows) parameters.push_back(std::move(parameter));
  return parameters;
}

/// The numbers of bytes, and of elements, of several parameters.
struct Totals {
  std::uint64_t elements = 0, bytes = 0, optimizer_bytes = 0;

  explicit Totals(const std::vector<Parameter>& parameters) {
    for (const Parameter& parameter : parameters) {
      elements += elements_of(*parameter.values);
      bytes += bytes_of(*parameter.values);
      for (const auto& [part, tensor] : parameter.optimizer) optimizer_bytes += bytes_of(*tensor);
    }
  }
};

/// A complete checkpoint of a run.
struct ListedCheckpoint {
  std::uint64_t step = 0;
  std::string folder;
  std::uint64_t bytes = 0;  // of all its files
};

/// The complete checkpoints of a run, ascending. An output replaces none of their files.
std::vector<ListedCheckpoint> checkpoints_of(const std::string& run, InputFiles& inputs) {
  std::vector<ListedCheckpoint> listed;
  for (const std::uint64_t step : runtime::complete_steps(run)) {
    ListedCheckpoint& one = listed.emplace_back();
    one.step = step;
    one.folder = run + "/" + runtime::step_folder(step);
    std::error_code error, none;
    for (fs::directory_iterator entry(one.folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (!entry->is_regular_file(none)) continue;
      const std::uintmax_t bytes = entry->file_size(none);
      if (!none) one.bytes += bytes;
      inputs.add(entry->path().string());
    }
  }
  return listed;
}

std::string extents_text(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d) text += (d ? ", " : "") + std::to_string(dims[d]);
  return text + "]";
}

std::string number_text(double number) {
  std::string text;
  runtime::append_json_number(text, number);
  return text;
}

std::string facts_text(const runtime::Manifest& manifest) {
  const auto shown = [](const std::string& text) {
    return runtime::peer_text(text, runtime::kMaxPeerMessage);
  };
  std::vector<std::vector<std::string>> rows = {{"step", std::to_string(manifest.step)},
                                                {"samples", std::to_string(manifest.samples)},
                                                {"updates", std::to_string(manifest.updates)},
                                                {"batch", std::to_string(manifest.batch)},
                                                {"train", shown(manifest.train)},
                                                {"seed", std::to_string(manifest.seed)},
                                                {"dtype", shown(manifest.dtype)},
                                                {"optimizer", shown(manifest.optimizer)},
                                                {"rate", shown(manifest.rate)},
                                                {"data", shown(manifest.data)}};
  if (manifest.held_out_loss)
    rows.push_back({"held out", "loss " + number_text(*manifest.held_out_loss)});
  return pictures::text_table(rows, {true, true});
}

std::string listed_text(const runtime::Checkpoint& checkpoint,
                        const std::vector<ListedCheckpoint>& listed) {
  std::vector<std::vector<std::string>> rows = {{"checkpoint", "bytes"}};
  for (const ListedCheckpoint& one : listed) {
    rows.push_back({runtime::step_folder(one.step), bytes_text(one.bytes)});
    if (one.folder == checkpoint.folder()) rows.back().emplace_back("this one");
  }
  return pictures::text_table(rows, {true, false, true});
}

std::string parameters_text(const runtime::Checkpoint& checkpoint) {
  const std::vector<Parameter> parameters = parameters_of(checkpoint);
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "extents", "type", "bytes", "optimizer", "its bytes"}};
  for (const Parameter& parameter : parameters) {
    const runtime::StoredTensor& stored = parameter.values->stored;
    std::string parts;
    std::uint64_t bytes = 0;
    for (const auto& [part, tensor] : parameter.optimizer) {
      parts += (parts.empty() ? "" : ", ") + std::string(part);
      bytes += bytes_of(*tensor);
    }
    rows.push_back({runtime::peer_text(stored.name), extents_text(stored.dims),
                    std::string(runtime::stored_type_name(stored.type)),
                    bytes_text(bytes_of(*parameter.values)), parts,
                    parts.empty() ? "" : bytes_text(bytes)});
  }
  const Totals totals(parameters);
  rows.push_back({counted(parameters.size(), "parameter"), counted(totals.elements, "element"), "",
                  bytes_text(totals.bytes), "", bytes_text(totals.optimizer_bytes)});
  return pictures::text_table(rows, {true, false, true, false, true, false});
}

std::string files_text(const runtime::Manifest& manifest) {
  std::vector<std::vector<std::string>> rows = {{"file", "bytes"}};
  for (const runtime::ManifestFile& file : manifest.files)
    rows.push_back({file.name, bytes_text(file.bytes)});
  return pictures::text_table(rows, {true, false});
}

/// A text for JSON, which is UTF-8; names of folders need not be.
json::Value utf8(std::string_view text) {
  const llvm::StringRef given(text.data(), text.size());
  return json::isUTF8(given) ? given.str() : json::fixUTF8(given);
}

void write_tensor(json::OStream& out, const Tensor& tensor, const runtime::Manifest& manifest) {
  out.attribute("bytes", bytes_of(tensor));
  out.attributeArray("extents", [&] {
    for (const std::int64_t extent : tensor.stored.dims) out.value(extent);
  });
  out.attribute("file", manifest.files[tensor.file].name);
  out.attribute("key", utf8(tensor.stored.name));
  out.attribute("position", tensor.position);
  out.attribute("type", utf8(runtime::stored_type_name(tensor.stored.type)));
}

void write_parameters(json::OStream& out, const std::vector<Parameter>& parameters,
                      const runtime::Manifest& manifest) {
  out.attributeArray("parameters", [&] {
    for (const Parameter& parameter : parameters) {
      out.object([&] {
        write_tensor(out, *parameter.values, manifest);
        out.attributeObject("optimizer", [&] {
          for (const auto& [part, tensor] : parameter.optimizer) {
            out.attributeObject(llvm::StringRef(part.data(), part.size()),
                                [&] { write_tensor(out, *tensor, manifest); });
          }
        });
      });
    }
  });
}

/// Everything but the checksums. `listed`: of a run.
std::string checkpoint_json(const runtime::Checkpoint& checkpoint,
                            const std::vector<ListedCheckpoint>& listed) {
  const runtime::Manifest& manifest = checkpoint.manifest();
  const std::vector<Parameter> parameters = parameters_of(checkpoint);
  const Totals totals(parameters);
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream);
  out.object([&] {
    out.attribute("batch", manifest.batch);
    if (!listed.empty()) {
      out.attributeArray("checkpoints", [&] {
        for (const ListedCheckpoint& one : listed) {
          out.object([&] {
            out.attribute("bytes", one.bytes);
            out.attribute("folder", utf8(one.folder));
            out.attribute("step", one.step);
          });
        }
      });
    }
    out.attribute("data", utf8(manifest.data));
    out.attribute("dtype", utf8(manifest.dtype));
    out.attribute("elements", totals.elements);
    out.attributeArray("files", [&] {
      for (const runtime::ManifestFile& file : manifest.files) {
        out.object([&] {
          out.attribute("bytes", file.bytes);
          out.attribute("name", file.name);
        });
      }
    });
    out.attribute("folder", utf8(checkpoint.folder()));
    if (manifest.held_out_loss) out.attribute("held_out_loss", *manifest.held_out_loss);
    out.attribute("optimizer", utf8(manifest.optimizer));
    out.attribute("optimizer_bytes", totals.optimizer_bytes);
    out.attribute("parameter_bytes", totals.bytes);
    write_parameters(out, parameters, manifest);
    out.attribute("rate", utf8(manifest.rate));
    out.attribute("samples", manifest.samples);
    out.attribute("schema", 1);
    out.attribute("seed", manifest.seed);
    out.attribute("step", manifest.step);
    out.attribute("train", utf8(manifest.train));
    out.attribute("updates", manifest.updates);
  });
  return text + "\n";
}

std::string checkpoint_text(const runtime::Checkpoint& checkpoint,
                            const std::vector<ListedCheckpoint>& listed) {
  return "checkpoint " + checkpoint.folder() + "\n" + facts_text(checkpoint.manifest()) +
         (listed.empty() ? "" : "\n" + listed_text(checkpoint, listed)) + "\n" +
         parameters_text(checkpoint) + "\n" + files_text(checkpoint.manifest());
}

/// The checkpoints of the run beside one that cannot be read: `run` has those of steps 100, 200.
std::string others_text(const runtime::FoundCheckpoint& found) {
  std::string steps;
  for (const std::uint64_t step : runtime::complete_steps(found.run)) {
    if (found.run + "/" + runtime::step_folder(step) != found.folder)
      steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  }
  return steps.empty() ? steps : "`" + found.run + "` also has checkpoints of steps " + steps;
}

}  // namespace

int show_checkpoint(Session& session, const std::string& text) {
  runtime::Failure failure;
  const auto found = runtime::find_checkpoint(text, failure);
  const auto checkpoint = found ? runtime::Checkpoint::open(found->folder, failure) : nullptr;
  if (!checkpoint) {
    if (found) failure.hint = others_text(*found);
    report_failure(session, failure, {});
    return session.finish();
  }
  InputFiles& inputs = session.inputs();
  for (const runtime::ManifestFile& file : checkpoint->manifest().files)
    inputs.add(found->folder + "/" + file.name);
  for (const char* name : {runtime::kManifestName, runtime::kIndexName})
    inputs.add(found->folder + "/" + name);
  std::vector<ListedCheckpoint> listed;
  if (!source::same_file(text, found->folder)) listed = checkpoints_of(found->run, inputs);
  session.write(session.arguments().format == "json" ? checkpoint_json(*checkpoint, listed)
                                                     : checkpoint_text(*checkpoint, listed));
  return session.finish();
}

}  // namespace piper::tools
