#pragma once
// Values of the language during elaboration: the results of expressions of a `.pipe` program.
//
// Guarantees: cheap to copy (16 bytes of payload; lists, selectors and orders are shared and
// immutable).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/directive/directive.h"
#include "ir/machine.h"
#include "ir/orders/order_value.h"
#include "ir/orders/search/objective.h"
#include "ir/tensor/graph.h"

namespace piper::lower {

struct Value;
using Values = std::vector<Value>;

/// `0..m`, `0..m by g`: integers, not stored.
struct Range {
  std::int64_t begin = 0, end = 0, step = 1;
  std::int64_t size() const { return end <= begin ? 0 : (end - begin - 1) / step + 1; }
};

/// An axis of the current mesh.
struct AxisValue {
  std::uint32_t axis = 0;
  std::int64_t size = 1;
};

/// A tensor of the model being built.
struct TensorValue {
  tensor::ValueId id;
};

/// A byte count, so that `8GiB` is not taken for a plain number where a number of elements is
/// meant.
struct ByteCount {
  std::int64_t bytes = 0;
};

/// `peak_memory`, `host_memory`, `bubble`, `traffic`: known only from a plan.
struct MeasureValue {
  directive::Measure measure{};
};

/// A comparison with a measure: becomes directive::Require.
struct MeasureTest {
  directive::Measure measure{};
  directive::Compare compare{};
  double bound = 0;
};

/// A cursor of the rank being elaborated: its position among the rank's cursors.
struct CursorValue {
  std::uint32_t index = 0;
};

/// A `names` item: its position in sema::Program::names.
struct NamesValue {
  std::uint32_t item = 0;
};

/// `weights(...)`, the value of `init`.
struct WeightsValue {
  directive::InitialWeights weights;  // without a map: it needs the model
  std::optional<NamesValue> names = {};
};

using orders::OrderValue;
using orders::PendingGradient;

/// The values of parameters that a file of weights lacks: those of their initializers.
enum class Fallback : std::uint8_t { init };

template <typename T>
using Shared = std::shared_ptr<const T>;

struct Value {
  using Payload = std::variant<
      std::monostate, std::int64_t, double, bool, ByteCount, Range, AxisValue, DeviceSetId,
      TensorValue, CursorValue, MeasureValue, NamesValue, tensor::DType, directive::Platform,
      directive::Sampling, directive::TokenType, directive::Decay, Fallback, orders::Objective,
      const Processor*, Shared<std::string>, Shared<Values>, Shared<directive::Selector>,
      Shared<OrderValue>, Shared<tensor::Init>, Shared<directive::LearningRate>,
      Shared<directive::Optimizer>, Shared<directive::Data>, Shared<WeightsValue>,
      Shared<directive::Every>, Shared<MeasureTest>, Shared<MachineDevice>, Shared<MachineLink>>;
  Payload payload;

  Value() = default;
  template <typename T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Value>)
  Value(T&& value) : payload(std::forward<T>(value)) {}

  bool none() const { return std::holds_alternative<std::monostate>(payload); }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&payload);
  }
  /// The shared object of that type, or null.
  template <typename T>
  const T* shared() const {
    const Shared<T>* found = std::get_if<Shared<T>>(&payload);
    return found ? found->get() : nullptr;
  }
};

/// An argument that a train gives its model, or the default of a parameter.
struct ModelArgument {
  std::string name;
  Value value;
};

template <typename T>
Value share(T value) {
  return Value(Shared<T>(std::make_shared<T>(std::move(value))));
}

/// The object that `share` made: itself if this value is its only holder, else a copy.
template <typename T>
T unshare(Value&& value) {
  const Shared<T> held = std::move(std::get<Shared<T>>(value.payload));
  return held.use_count() == 1 ? std::move(*std::const_pointer_cast<T>(held)) : *held;
}

/// How many elements a value has as part of a list: those of a list or a range, else 1.
std::uint64_t length(const Value& value);

/// The nearest integer; nothing when it does not fit into 64 bits or there is none.
std::optional<std::int64_t> rounded_to_int(double value);

/// The value in words, for messages: `3`, `0..8`, `a list of 4`, `an axis of 2`, `"corpus.txt"`.
std::string describe(const Value& value);

}  // namespace piper::lower
