#include "frontend/tools/initial_weights.h"

#include <utility>

#include "frontend/tools/train_job.h"
#include "frontend/tools/weight_names.h"
#include "runtime/crc32.h"

namespace piper::tools {
namespace {

runtime::ParameterShape shape_of(std::string_view name, const tensor::Type& type) {
  runtime::ParameterShape shape{std::string(name), {}};
  for (const tensor::Dim& dim : type.dims) shape.dims.push_back(dim.extent);
  return shape;
}

}  // namespace

std::vector<runtime::ParameterShape> shapes_of(const tensor::Graph& model) {
  std::vector<runtime::ParameterShape> shapes;
  for (const tensor::Param& param : model.params)
    shapes.push_back(shape_of(model.context().text(param.name), model.type(param.value)));
  return shapes;
}

std::vector<runtime::ParameterShape> shapes_of(const dag::Dag& dag) {
  std::vector<runtime::ParameterShape> shapes;
  for (std::size_t p = 0; p < dag.params.size(); ++p)
    shapes.push_back(shape_of(dag.context->text(dag.params[p].name), dag.param_types[p]));
  return shapes;
}

std::optional<OpenedWeights> open_weights(const std::vector<runtime::ParameterShape>& shapes,
                                          const directive::InitialWeights& init,
                                          runtime::Failure& failure) {
  OpenedWeights weights;
  weights.files = runtime::WeightFiles::open(init.path, failure);
  if (!weights.files) return std::nullopt;
  weights.map = init.map ? runtime_map(*init.map) : runtime::own_names(shapes);
  auto differs = runtime::check_map(weights.map, shapes);
  if (!differs)
    differs = runtime::match_weights(
        *weights.files, weights.map,
        init.keeps_missing ? runtime::Missing::initialised : runtime::Missing::refused,
        weights.report);
  if (!differs) return weights;
  failure = std::move(*differs);
  return std::nullopt;
}

std::optional<runtime::Failure> take_weights(const OpenedWeights& weights,
                                             const runtime::StateMemory& memory,
                                             const std::function<bool()>& stopped) {
  runtime::LoadOptions options;
  options.stopped = stopped;
  return runtime::load_weights(memory, *weights.files, weights.map, options);
}

bool weights_fit(Session& session, const lower::Lowered& lowered, std::optional<Code> code) {
  const std::optional<directive::InitialWeights>& init = lowered.strategy.settings.init;
  runtime::Failure failure;
  if (!init || open_weights(shapes_of(lowered.model), *init, failure)) return true;
  if (code) {
    failure.code = static_cast<std::uint32_t>(*code);
    failure.hint = "`train` needs it: " + failure.hint;
  }
  report_failure(session, failure, init->path_loc);
  return false;
}

std::string weights_identity(const std::optional<OpenedWeights>& weights) {
  if (!weights) return {};
  const runtime::WeightsReport& report = weights->report;
  return std::to_string(weights->files->tensors().size()) + " tensors, " +
         runtime::crc32_text(weights->files->fingerprint()) + ", " +
         std::to_string(report.parameters) + " parameters";
}

}  // namespace piper::tools
