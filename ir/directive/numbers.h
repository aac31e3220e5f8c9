#pragma once
// The numbers of directives and of `every`, with their bounds, for the evaluator, the `.pir` reader
// and checks of directives built in memory (check_numbers.h).
//
//   kWindow.allows(0)          ->  false
//   kWindow.refusal("0", true) ->  "the window is `0`; it must be at least 1"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"

namespace piper::directive {

/// The upper bound of all counts.
inline constexpr std::int64_t kMaxCounted = std::numeric_limits<std::int32_t>::max();

struct Number {
  std::string_view what;  // its name in messages
  std::int64_t min_value = 1, max_value = kMaxCounted;
  // Shown for a refused value unless it is above kMaxCounted; empty: the bounds are shown.
  std::string_view rule = {};
  std::string_view hint = {};
  Code code = Code::not_positive;

  bool allows(std::int64_t value) const { return value >= min_value && value <= max_value; }
  /// Whether a factor is finite, and at least `min_value`.
  bool allows_factor(double value) const {
    return std::isfinite(value) && value >= static_cast<double>(min_value);
  }
  /// The error text for a refused value; `written` is its text in the program.
  std::string refusal(std::string_view written, bool too_small) const;
};

inline constexpr Number kStages{.what = "the number of stages"};
inline constexpr Number kUnits{.what = "the number of units of a stage of `sizes`"};
inline constexpr Number kParts{.what = "the number of parts"};
inline constexpr Number kWindow{.what = "the window"};
inline constexpr Number kBucket{.what = "the size of a bucket",
                                .max_value = std::numeric_limits<std::int64_t>::max(),
                                .rule = "it must be positive",
                                .hint = "write `bucket: 25MiB`"};
inline constexpr Number kZero{.what = "`zero`",
                              .min_value = 0,
                              .max_value = 3,
                              .rule = "it must be 0, 1, 2 or 3",
                              .code = Code::setting_out_of_range};
inline constexpr Number kPrefetch{.what = "`prefetch`",
                                  .min_value = 0,
                                  .rule = "it counts runs of work, from 0 on",
                                  .code = Code::setting_out_of_range};
inline constexpr Number kRateFactor{.what = "`rate`",
                                    .min_value = 0,
                                    .rule = "it must be at least 0 and finite",
                                    .code = Code::setting_out_of_range};
inline constexpr Number kDecayFactor{.what = "`decay`",
                                     .min_value = 0,
                                     .rule = "it must be at least 0 and finite",
                                     .code = Code::setting_out_of_range};
inline constexpr Number kEverySteps{.what = "`steps` of `every`",
                                    .max_value = std::int64_t{1} << 50,
                                    .code = Code::setting_out_of_range};
inline constexpr Number kKeptCheckpoints{.what = "`keep` of `every`",
                                         .code = Code::setting_out_of_range};

}  // namespace piper::directive
