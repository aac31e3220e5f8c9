#pragma once
// The settings of a train in `.pir` text, described once for their writer (print_settings.cpp) and
// their reader (parse_settings.cpp). `line` of a description is const for the writer.
//
//   optim sgd(lr: linear(0.1, warmup: 3, floor: 0), momentum: 0.9, weight_decay: 0, clip: 1.5) #4
//
// A description calls, in the order of the text:
//
//   io.text(words)                     words and signs, with the spaces around them
//   io.value(value, kind)              a value; `kind` is one of the structs below
//   io.brackets(owner, describe)       `(...)`: items with commas between them
//   io.block(owner, describe)          `{...}`: items on lines
//   io.location(loc)
//
// and `describe` of its items
//
//   items.first(value, kind)                             the first one, which has no name
//   items.item(name, value, kind, loc...)                `momentum: 0.9`; the reader needs it
//   items.optional(name, value, absent, kind, loc...)    absent if the value is `absent`
//   items.extents(extents)                               any number of items of other names
//
// The reader takes the items after the first one in any order.

#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include "ir/directive/directive.h"
#include "ir/directive/numbers.h"

namespace piper::directive {

// ---- kinds of values; `expected` is shown where the reader misses one ("a number of steps")

/// An integer from 0 to `max_value`.
struct Count {
  std::string_view expected;
  std::int64_t max_value = kMaxCounted;
};
/// A floating number behind the words `before`.
struct Real {
  std::string_view expected;
  std::string_view before = {};
};
/// One of `words`, in the order of the enumerators.
template <typename Text, std::size_t n>
struct Word {
  std::string_view expected;
  const Text (&words)[n];
};
/// A string in quotes.
struct Quoted {
  std::string_view expected;
};
/// A name, in quotes if it has other characters.
struct Name {
  std::string_view expected;
};
/// The word for true; false is absent.
struct Flag {
  std::string_view word;
};
/// An element type.
struct ElementType {};
/// A struct with a description of its own.
struct Described {};

inline constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
inline constexpr std::string_view kLearningRateNames[] = {"constant", "cosine", "linear"};

template <typename Line, typename Struct>
concept MaybeConst = std::same_as<std::remove_const_t<Line>, Struct>;

/// `tokens("corpus.bin", batch: 32, seq: 128, dtype: u16, batches: 8, sampling: replacement)`
template <typename Io, MaybeConst<Data> Line>
void fields(Io& io, Line& line) {
  io.value(line.kind, Word{"a source of data", kDataNames});
  io.brackets("the data", [&](auto& items) {
    const bool reads = line.kind != Data::Kind::synthetic;
    if (reads) items.first(line.path, Quoted{"a path"});
    if (!reads) items.item("classes", line.classes, Count{"a number of classes", kMax64});
    items.item("batch", line.batch, Count{"a number of samples"});
    items.extents(line.extents);
    if (line.kind == Data::Kind::tokens)
      items.optional("dtype", line.token_type, TokenType::by_file,
                     Word{"a type of ids", kTokenTypeNames});
    items.optional("batches", line.batches, 0, Count{"a number of batches"});
    if (reads)
      items.optional("sampling", line.sampling, Sampling::epoch,
                     Word{"an order of samples", kSamplingNames});
  });
  io.location(line.loc);
}

/// `linear(0.1, warmup: 3, floor: 0)`
template <typename Io, MaybeConst<LearningRate> Line>
void fields(Io& io, Line& line) {
  io.value(line.kind, Word{"a learning rate", kLearningRateNames});
  io.brackets("the learning rate", [&](auto& items) {
    items.first(line.base, Real{"a learning rate"});
    items.item("warmup", line.warmup, Count{"a number of steps"});
    items.item("floor", line.floor, Real{"a learning rate"});
  });
}

/// `sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0.9, weight_decay: 0, decay: matrices)`
template <typename Io, MaybeConst<Optimizer> Line>
void fields(Io& io, Line& line) {
  io.value(line.kind, Word{"an optimizer", kOptimizerNames});
  io.brackets("the optimizer", [&](auto& items) {
    items.item("lr", line.lr, Described{});
    switch (line.kind) {
      case Optimizer::Kind::sgd: items.item("momentum", line.momentum, Real{"a number"}); break;
      case Optimizer::Kind::adamw:
        items.item("beta1", line.beta1, Real{"a number"});
        items.item("beta2", line.beta2, Real{"a number"});
        items.item("eps", line.eps, Real{"a number"});
        break;
    }
    items.item("weight_decay", line.weight_decay, Real{"a number"});
    items.optional("decay", line.decay, Decay::all,
                   Word{"a choice of parameters that decay", kDecayNames});
    items.optional("clip", line.clip, std::nullopt, Real{"a number"});
  });
  io.location(line.loc);
}

/// `every 100 keep 3 best`
template <typename Io, MaybeConst<Every> Line>
void fields(Io& io, Line& line) {
  io.text("every ");
  io.value(line.steps, Count{"a number of steps", kEverySteps.max_value});
  io.optional(" keep ", line.keep, Count{"a number of checkpoints", kKeptCheckpoints.max_value});
  io.flag(" best", line.best);
  io.location(line.loc);
}

/// `weights("model.safetensors", names: hf_llama, missing: init)`
template <typename Io, MaybeConst<InitialWeights> Line>
void fields(Io& io, Line& line) {
  io.text("weights");
  io.brackets("the file of weights", [&](auto& items) {
    items.first(line.path, Quoted{"a path"});
    items.optional("names", line.names, "", Name{"a `names` item"});
    items.optional("missing", line.keeps_missing, false, Flag{"init"});
  });
  io.location(line.loc);
}

/// The train after its word.
template <typename Io, MaybeConst<Settings> Line>
void fields(Io& io, Line& line) {
  io.value(line.train, Name{"a train"});
  io.location(line.loc);
  io.block("the train", [&](auto& items) {
    items.item("steps", line.steps, Count{"a number of steps", kMax64});
    items.item("dtype", line.dtype, ElementType{});
    items.item("seed", line.seed, Count{"a seed", kMax64});
    items.optional("device", line.device, Platform::cpu, Word{"a device", kPlatformNames});
    items.optional("data", line.data, std::nullopt, Described{});
    items.optional("held_out", line.held_out, std::nullopt, Described{});
    items.optional("optim", line.optimizer, std::nullopt, Described{});
    items.optional("checkpoint", line.checkpoint, std::nullopt, Described{});
    items.optional("evaluate", line.evaluate, std::nullopt, Described{});
    items.optional("ema", line.ema, std::nullopt, Real{"the decay of an average"}, line.ema_loc);
    items.optional("skip_step", line.skip_above, std::nullopt, Real{"a gradient norm", "norm > "},
                   line.skip_loc);
    items.optional("init", line.init, std::nullopt, Described{});
  });
}

}  // namespace piper::directive
