#include "ir/directive/numbers.h"

namespace piper::directive {

std::string Number::refusal(std::string_view written, bool too_small) const {
  const std::string bound = too_small ? "it must be at least " + std::to_string(least) : "it must be at most " + std::to_string(most);
  return std::string(what) + " is `" + std::string(written) + "`; " + (rule.empty() || (!too_small && most == kMaxCounted) ? bound : std::string(rule));
}

}  // namespace piper::directive
