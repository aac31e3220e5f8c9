#include "ir/directive/check_numbers.h"

#include <variant>

#include "ir/directive/numbers.h"

namespace piper::directive {

namespace {

class NumberCheck {
 public:
  explicit NumberCheck(DiagnosticSink& sink) : sink_(sink) {}

  void operator()(const Partition& line) const {
    check(kStages, line.into.extent, narrowest(line.into.loc, line.loc));
    for (const std::uint32_t size : line.sizes) check(kUnits, size, narrowest(line.sizes_loc, line.loc));
  }
  void operator()(const Split& line) const {
    for (const NamedExtent& part : line.into) check(kParts, part.extent, narrowest(part.loc, line.loc));
  }
  void operator()(const Replicate& line) const {
    check(kZero, line.zero, narrowest(line.zero_loc, line.loc));
    if (line.bucket_bytes) check(kBucket, *line.bucket_bytes, line.loc);
    if (line.prefetch) check(kPrefetch, *line.prefetch, narrowest(line.prefetch_loc, line.loc));
  }
  void operator()(const Stream& line) const {
    if (line.window) check(kWindow, *line.window, narrowest(line.window_loc, line.loc));
  }
  void operator()(const Offload& line) const { check(kWindow, line.window, line.loc); }
  void operator()(const Place&) const {}
  void operator()(const Order&) const {}
  void operator()(const Require&) const {}
  void operator()(const Recompute&) const {}
  void operator()(const Freeze&) const {}

 private:
  void check(const Number& number, std::int64_t value, LocId loc) const {
    if (number.allows(value)) return;
    DiagnosticBuilder builder = sink_.report(number.code, loc, "{}", number.refusal(std::to_string(value), value < number.least));
    if (!number.hint.empty()) builder.hint("{}", number.hint);
  }

  DiagnosticSink& sink_;
};

}  // namespace

void check_numbers(const Directive& directive, DiagnosticSink& sink) { std::visit(NumberCheck(sink), directive); }

}  // namespace piper::directive
