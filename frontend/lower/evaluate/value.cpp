#include "frontend/lower/evaluate/value.h"

#include <cmath>

#include "ir/diagnostics/counted.h"

namespace piper::lower {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

std::string number(double value) {
  std::string text = std::to_string(value);
  while (text.find('.') != std::string::npos && (text.back() == '0' || text.back() == '.')) {
    const bool point = text.back() == '.';
    text.pop_back();
    if (point) break;
  }
  return text;
}

}  // namespace

std::uint64_t length(const Value& value) {
  if (const Values* list = value.shared<Values>()) return list->size();
  if (const Range* range = value.get<Range>()) return static_cast<std::uint64_t>(range->size());
  return 1;
}

std::optional<std::int64_t> rounded_to_int(double value) {
  const double rounded = std::round(value);
  if (!(rounded >= -0x1p63 && rounded < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

std::string describe(const Value& value) {
  return std::visit(
      Overloaded{
          [](std::monostate) -> std::string { return "nothing"; },
          [](std::int64_t v) { return std::to_string(v); },
          [](double v) { return number(v); },
          [](bool v) -> std::string { return v ? "true" : "false"; },
          [](ByteCount v) { return counted(v.bytes, "byte"); },
          [](Range v) {
            std::string text = std::to_string(v.begin) + ".." + std::to_string(v.end);
            return v.step == 1 ? text : text + " by " + std::to_string(v.step);
          },
          [](AxisValue v) { return "an axis of " + std::to_string(v.size); },
          [](DeviceSetId) -> std::string { return "a device set"; },
          [](TensorValue) -> std::string { return "a tensor"; },
          [](CursorValue) -> std::string { return "a cursor"; },
          [](MeasureValue) -> std::string { return "a measure"; },
          [](NamesValue) -> std::string { return "a map of names"; },
          [](tensor::DType v) { return std::string(tensor::dtype_name(v)); },
          [](directive::Platform v) -> std::string {
            return directive::kPlatformNames[static_cast<std::size_t>(v)];
          },
          [](directive::Sampling v) -> std::string {
            return std::string(directive::kSamplingNames[static_cast<std::size_t>(v)]);
          },
          [](directive::TokenType v) -> std::string {
            return std::string(directive::kTokenTypeNames[static_cast<std::size_t>(v)]);
          },
          [](Fallback) -> std::string { return "init"; },
          [](orders::Objective v) -> std::string {
            return v == orders::Objective::span ? "span" : "makespan";
          },
          [](directive::Decay v) -> std::string {
            return std::string(directive::kDecayNames[static_cast<std::size_t>(v)]);
          },
          [](const Processor* v) -> std::string { return v->name; },
          [](const Shared<std::string>& v) { return "\"" + *v + "\""; },
          [](const Shared<Values>& v) { return "a list of " + std::to_string(v->size()); },
          [](const Shared<directive::Selector>&) -> std::string { return "a selector"; },
          [](const Shared<OrderValue>&) -> std::string { return "an order"; },
          [](const Shared<tensor::Init>&) -> std::string { return "an initialiser"; },
          [](const Shared<directive::LearningRate>&) -> std::string { return "a learning rate"; },
          [](const Shared<directive::Optimizer>&) -> std::string { return "an optimizer"; },
          [](const Shared<directive::Data>&) -> std::string { return "a data source"; },
          [](const Shared<WeightsValue>& v) { return "weights of `" + v->weights.path + "`"; },
          [](const Shared<directive::Every>& v) { return "every " + counted(v->steps, "step"); },
          [](const Shared<MeasureTest>&) -> std::string { return "a requirement on the plan"; },
          [](const Shared<MachineDevice>&) -> std::string { return "a device"; },
          [](const Shared<MachineLink>&) -> std::string { return "a link"; },
      },
      value.payload);
}

}  // namespace piper::lower
