#include "frontend/lower/observations.h"

#include <algorithm>

#include "frontend/lower/value_text.h"

namespace piper::lower {

namespace {

constexpr std::uint32_t kLookedAt = 64;

std::string in_words(const Value& value, const tensor::Graph* model) {
  if (const auto* tensor = value.get<TensorValue>(); tensor != nullptr && model != nullptr) return tensor::print(model->value(tensor->id).type, model->context().symbols);
  const Values* list = value.shared<Values>();
  if (list == nullptr || list->size() > 8) return describe(value);
  std::string text;
  for (const Value& element : *list) text += (text.empty() ? "" : ", ") + in_words(element, model);
  return "[" + text + "]";
}

}  // namespace

void Observations::note(SourceRange range, const Value& value, const directive::Surroundings& around, const tensor::Graph* model) {
  if (range.file != file_ || value.none()) return;
  if (asked_ && asked_->range == range) {
    asked_->text = value_text(value, around, model);
    asked_->is_order = value.shared<OrderValue>() != nullptr;
  }
  Seen& seen = seen_[range];
  if (seen.more || seen.looked_at == kLookedAt) return;
  ++seen.looked_at;
  std::string words = in_words(value, model);
  if (std::find(seen.values.begin(), seen.values.end(), words) != seen.values.end()) return;
  if (seen.values.size() == kShown) {
    seen.more = true;
  } else {
    seen.values.push_back(std::move(words));
    const auto* tensor = value.get<TensorValue>();
    if (tensor != nullptr && model != nullptr) seen.bytes.push_back(model->value(tensor->id).type.bytes());
  }
}

const Observations::Seen* Observations::of(SourceRange range) const {
  const auto found = seen_.find(range);
  return found != seen_.end() ? &found->second : nullptr;
}

}  // namespace piper::lower
