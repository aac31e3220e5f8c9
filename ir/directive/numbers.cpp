#include "ir/directive/numbers.h"

namespace piper::directive {

std::string Number::refusal(std::string_view written, bool too_small) const {
  const std::string bound = too_small ? "it must be at least " + std::to_string(min_value)
                                      : "it must be at most " + std::to_string(max_value);
  return std::string(what) + " is `" + std::string(written) + "`; " +
         (rule.empty() || (!too_small && max_value == kMaxCounted) ? bound : std::string(rule));
}

}  // namespace piper::directive
