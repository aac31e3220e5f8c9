#include "tests/support/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "frontend/lower/lower.h"
#include "tests/support/compile.h"
#include "tests/support/random_models.h"
#include "tests/support/random_orders.h"

namespace piper::test {

namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

class ProgramMaker {
 public:
  ProgramMaker(Context& context, Random& random, const RandomProgramOptions& options)
      : context_(context), random_(random), options_(options) {}

  RandomProgram make() {
    pp_ = between(1, std::min(4u, options_.max_devices));
    dp_ = between(1, std::min(3u, options_.max_devices / pp_));
    ep_ = random_.chance(0.15) ? between(1, std::min(2u, options_.max_devices / (pp_ * dp_))) : 0;
    microbatches_ = between(1, 4);
    copies_ = random_.chance(0.25) ? 2 : 1;
    // Replicas may have different numbers of samples.
    const std::uint32_t replicas = dp_ * std::max(1u, ep_);
    const std::uint64_t batch =
        std::uint64_t{copies_} * microbatches_ * between(replicas, 2 * replicas);
    // How the work gets its regions: 0 stages, 1 stages that the model marks, 2 its own calls.
    const std::uint64_t cut = random_.chance(0.7) ? 0 : random_.between(1, 2);
    marked_ = cut == 1;
    stages_ = between(1, std::min(5u, 2 * pp_));
    const RandomModel model =
        random_model(random_, {.stages = cut == 1 ? stages_ : 0, .dropout = options_.dropout});
    for (const auto& [name, index] : model.regions)
      calls_.push_back(name + "[" + number(index) + "]");

    std::string axes = random_.chance(0.8) ? "pp: " + number(pp_) + ", dp: " + number(dp_)
                                           : "dp: " + number(dp_) + ", pp: " + number(pp_);
    if (ep_ > 0) axes += ", ep: " + number(ep_);
    std::string text = model.text + "mesh grid(" + axes + ")\ntrain drawn = " + model.call +
                       " on grid {\n    data:  synthetic(batch: " + number(batch) + model.extents +
                       ")\n" + settings();
    if (cut < 2) {
      text += "    partition model into stage: " + number(stages_) + "\n";
      for (std::uint32_t s = 0; s < stages_; ++s) regions_.push_back("stage[" + number(s) + "]");
      numbered_ = true;
    } else {
      for (const auto& [name, index] : model.regions)
        regions_.push_back(name + "[" + number(index) + "]");
    }
    if (copies_ == 2) {
      text += "    split batch into copy: 2, mb: " + number(microbatches_) + "\n";
    } else {
      text += "    split batch into mb: " + number(microbatches_) + "\n";
    }
    text += place();
    if (cut > 0) text += "    place model on pp[" + number(random_.below(pp_)) + "]\n";
    text += replicate();

    text = with_treatments(text + "}\n");
    text.resize(text.size() - 2);
    RandomProgram program = read_program(context_, text + "}\n");
    if (!options_.order || random_.chance(0.25)) return with_streams(std::move(program));
    const std::string order = random_order(context_, random_, program.model, program.strategy, "pp",
                                           {.halves = options_.halves});
    return with_streams(order.empty() ? std::move(program)
                                      : read_program(context_, with_order(text, order) + "}\n"));
  }

 private:
  /// The text with an order. Some orders are those of a function, changed by transforms that keep
  /// every order legal: nothing is beyond the last microbatch. Later weight gradients delay
  /// communication, and the `R` and gathers that an order names; replicas with orders of their own
  /// would part.
  std::string with_order(const std::string& text, const std::string& order) const {
    static const std::string kBegin = "    order {\n", kEnd = "    }\n";
    const auto names = [&](const char* word) { return order.find(word) != std::string::npos; };
    // From the text, because a draw of its own would change every program after it.
    if (order.size() % 3 != 0 || !order.starts_with(kBegin) || !order.ends_with(kEnd))
      return text + order;
    const bool later = options_.halves && (names("B ") || names("BW")) && !names(".reduce") &&
                       !names(".gather") && !names("R ") && !names("dp") && !names("at ");
    std::string params = "pp: axis, dp: axis", arguments = "pp, dp";
    if (ep_ > 0) {
      params += ", ep: axis";
      arguments += ", ep";
    }
    const std::string steps =
        order.substr(kBegin.size(), order.size() - kBegin.size() - kEnd.size());
    const std::size_t train = text.find("\ntrain drawn = ") + 1;
    return text.substr(0, train) + "def drawn_order(" + params + ") -> order {\n" + steps + "}\n" +
           text.substr(train) + "    order drawn_order(" + arguments +
           ").trim(mb: " + number(microbatches_) + ")" +
           (later ? ".postpone(BW, by: " + number(1 + order.size() % 5) + ")" : "") + "\n";
  }

  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return static_cast<std::uint32_t>(random_.between(low, high));
  }

  /// Short ones are a hundredth of the others.
  static std::string rate(std::uint32_t shape, bool short_steps) {
    const std::string base = short_steps ? "1e-4" : "1e-2";
    switch (shape) {
      case 0:
      case 1: return base;
      case 2: return "cosine(" + base + ", warmup: 1)";
      case 3:
        return "linear(" + base + ", warmup: 2, floor: " + (short_steps ? "1e-5" : "1e-3") + ")";
      default: return "flat(" + base + ", warmup: 2)";
    }
  }

  std::string settings() {
    const std::uint32_t shape = random_.below(5);
    const std::string bound =
        random_.chance(0.5) ? random_.pick(std::vector<std::string>{"0.1", "1.0", "100.0"}) : "";
    const std::string clip = bound.empty() ? "" : ", clip: " + bound;
    std::string optimizer;  // without its last bracket
    if (random_.chance(0.4)) {
      // Losses have no bound and gradients reach hundreds: larger steps would make a model diverge,
      // where rounding grows without bound.
      const bool short_steps = bound.empty() || bound == "100.0";
      optimizer = "sgd(lr: " + rate(shape, short_steps) +
                  (random_.chance(0.6) ? ", momentum: 0.9" : "") +
                  (random_.chance(0.5) ? ", weight_decay: 0.01" : "") + clip;
    } else {
      // If gradients are rounding noise around zero, their sign would decide whole steps of size
      // lr; a large eps treats them as zero.
      optimizer = "adamw(lr: " + rate(shape, false) +
                  (random_.chance(0.3) ? ", betas: [0.8, 0.95]" : "") + ", eps: 1e-4" +
                  (random_.chance(0.5) ? ", weight_decay: 0.1" : "") + clip;
    }
    const std::uint64_t seed = seed_ = random_.below(1u << 31);
    // Drawn from the seed, because draws of their own would change every program after them.
    if (seed / 16 % 3 == 0) optimizer += ", decay: matrices";
    std::string checkpoint;
    if (seed / 48 % 4 == 0) checkpoint += "    ema: 0.75\n";
    if (seed / 192 % 4 == 0)
      checkpoint += "    skip_step: norm > " + std::string(seed / 768 % 2 == 0 ? "1" : "30") + "\n";
    if (seed % 4 == 0) checkpoint += "    checkpoint: every(" + number(1 + seed / 4 % 4) + ")\n";
    if (seed % 4 == 1)
      checkpoint += "    checkpoint: every(" + number(1 + seed / 4 % 4) + ", keep: 2)\n";
    return "    optim: " + optimizer + ")\n    steps: 3\n    dtype: " + options_.dtype +
           "\n    seed:  " + number(seed) + "\n" + checkpoint;
  }

  std::string on(std::uint32_t device) { return " on pp[" + number(device) + "]\n"; }

  std::string place() {
    const std::uint64_t kind = random_.below(7);
    const std::string stages = number(stages_), p = number(pp_), last = number(2 * pp_ - 1);
    if (numbered_ && copies_ == 1 && kind == 0)
      return "    for s in 0.." + stages + " { place stage[s] on pp[s % " + p + "] }\n";
    if (numbered_ && copies_ == 1 && kind == 1)
      return "    for s in 0.." + stages + " { place stage[s] on pp[min(s % " + number(2 * pp_) +
             ", " + last + " - s % " + number(2 * pp_) + ")] }\n";
    if (numbered_ && copies_ == 1 && kind == 2) {
      const std::string each = "    for s in 0.." + stages + ", i in 0.." + number(microbatches_);
      if (random_.chance(0.5))
        return each + " { place F stage[s] mb[i] on pp[(s + i) % " + p +
               "]; place B stage[s] mb[i] on pp[(s + i + 1) % " + p + "] }\n";
      return each + " { place F stage[s] mb[i] on pp[(s + i / " + number(between(1, 2)) + ") % " +
             p + "] }\n";
    }
    std::string text;
    for (std::size_t k = 0; k < regions_.size(); ++k) {
      const std::uint32_t device =
          kind < 3 ? static_cast<std::uint32_t>(k) % pp_ : between(0, pp_ - 1);
      if (copies_ == 2) {
        text += "    place " + regions_[k] + " copy[0]" + on(device) + "    place " + regions_[k] +
                " copy[1]" + on(random_.chance(0.7) ? pp_ - 1 - device : between(0, pp_ - 1));
      } else if (kind == 6 && random_.chance(0.6)) {
        // The forward reads weights on devices that make no gradient for them.
        text += "    place F " + regions_[k] + on(device) + "    place B " + regions_[k] +
                on(between(0, pp_ - 1));
      } else {
        text += "    place " + regions_[k] + on(device);
        if (kind == 5 && random_.chance(0.4))
          text += "    place " + regions_[k] + " mb[" + number(between(0, microbatches_ - 1)) +
                  "]" + on(between(0, pp_ - 1));
      }
    }
    return text;
  }

  std::string replicate() {
    std::vector<std::string> over;
    if (dp_ > 1 && random_.chance(0.8)) over.push_back("dp");
    if (ep_ > 1 && random_.chance(0.8)) over.push_back("ep");
    if (over.empty()) return "";
    const std::string bucket =
        random_.chance(0.5)
            ? "bucket: " + number(static_cast<std::uint64_t>(random_.between(1, 400)))
            : "";
    const auto line = [&](const std::string& axes, std::uint32_t zero) {
      std::vector<std::string> settings;
      if (zero > 0) settings.push_back("zero: " + number(zero));
      if (!bucket.empty()) settings.push_back(bucket);
      if (zero > 1 && random_.chance(0.4))
        settings.push_back(random_.chance(0.5) ? "reduce: microbatch" : "reduce: unit");
      if (zero > 2 && random_.chance(0.6))
        settings.push_back("prefetch: " + number(random_.below(4)));
      std::string text = "    replicate model over " + axes;
      for (std::size_t i = 0; i < settings.size(); ++i)
        text += (i == 0 ? " with " : ", ") + settings[i];
      return text + "\n";
    };
    // State, gradients and parameters whole, or cut over all axes, or over one of them alone. Loose
    // work that marked stages take in stays outside where an order names it, as orders drawn from
    // units would.
    const std::uint32_t zero = random_.chance(0.3) ? 0 : between(1, marked_ ? 1 : 3);
    if (over.size() > 1 && zero > 0 && random_.chance(0.5))
      return line(over.front(), zero) + line(over.back(), 0);
    return line(over.front() + (over.size() > 1 ? ", " + over.back() : ""), zero);
  }

  /// Adds lines that run forwards again, offload and freeze weights, where there is something to
  /// run again, to offload or to freeze.
  std::string with_treatments(std::string source) {
    const auto add = [&](const std::string& line) {
      std::string longer = with_line(source, line);
      RandomProgram program = read_program(context_, longer);
      DiagnosticSink sink(context_.locations);
      passes::Options options;
      options.stop_at = line.starts_with("offload") ? dag::Level::planned : dag::Level::split;
      if (test::compile(program.model, program.strategy, sink, options)) {
        source = std::move(longer);
        return;
      }
      const std::vector<Diagnostic> told = sink.sorted();
      const bool empty = std::any_of(told.begin(), told.end(), [](const Diagnostic& each) {
        return each.code == Code::nothing_to_recompute || each.code == Code::nothing_to_offload ||
               each.code == Code::offloaded_twice || each.code == Code::nothing_to_freeze ||
               each.code == Code::nothing_left_to_train || each.code == Code::nothing_to_tune ||
               each.code == Code::tuned_twice;
      });
      EXPECT_TRUE(empty) << render_text(sink.sorted(), context_.locations.files()) << longer;
    };
    // Calls inside stages are then separate segments.
    const auto region = [&] {
      return random_.chance(0.25) ? "model" : random_.pick(random_.chance(0.5) ? regions_ : calls_);
    };
    const bool recomputes = random_.chance(0.4), freezes = random_.chance(0.25);
    for (std::uint64_t i = recomputes ? random_.between(1, 2) : 0; i > 0; --i) {
      const std::string instances =
          random_.chance(0.6) ? "" : " mb[0.." + number(between(1, microbatches_)) + "]";
      add("recompute " + region() + instances +
          (copies_ == 2 && random_.chance(0.3) ? " copy[1]" : ""));
    }
    for (std::uint64_t i = freezes ? random_.between(1, 2) : 0; i > 0; --i)
      add("freeze " + random_.pick(random_.chance(0.5) ? regions_ : calls_));
    const bool offloads = random_.chance(0.25);
    for (std::uint64_t i = offloads ? random_.between(1, 2) : 0; i > 0; --i) {
      const std::string instances =
          random_.chance(0.6) ? "" : " mb[0.." + number(between(1, microbatches_)) + "]";
      add("offload " + region() + instances +
          (random_.chance(0.3) ? "" : " with window: " + number(between(1, 4))));
    }
    if (random_.chance(0.15))
      add("offload " + random_.pick(random_.chance(0.5) ? regions_ : calls_) +
          " with what: optimizer, window: " + number(between(1, 3)));
    // Its own draws leave those of other lines as they are.
    Random tuned(seed_);
    for (std::uint64_t i = tuned.chance(0.4) ? tuned.between(1, 3) : 0; i > 0; --i) {
      const std::uint64_t kind = tuned.below(4);
      add("tune " + tuned.pick(tuned.chance(0.5) ? regions_ : calls_) + " with " +
          (kind == 0   ? "rate: 0.5"
           : kind == 1 ? "decay: 0"
           : kind == 2 ? "rate: 2, decay: 0.5"
                       : "rate: 0"));
    }
    return source;
  }

  /// Puts existing communication on separate streams, with an ample window.
  RandomProgram with_streams(RandomProgram program) {
    if (!options_.streams || random_.chance(0.6)) return program;
    DiagnosticSink sink(context_.locations);
    passes::Options options;
    options.stop_at = dag::Level::communicating;
    const auto dag = test::compile(program.model, program.strategy, sink, options);
    EXPECT_TRUE(dag) << render_text(sink.sorted(), context_.locations.files()) << program.source;
    if (!dag) return program;
    const auto has = [&](dag::NodeKind kind) {
      return std::any_of(dag->nodes.begin(), dag->nodes.end(), [&](const dag::Node& node) {
        return node.kind == kind && (!reduces_members(kind) || node.subject.bucket().valid());
      });
    };
    std::string source = program.source;
    if (has(dag::NodeKind::send) && random_.chance(0.7))
      source = with_line(source, "stream p2p: model.send, model.recv with window: 100");
    if ((has(dag::NodeKind::all_reduce) || has(dag::NodeKind::reduce_scatter)) &&
        random_.chance(0.7))
      source = with_line(source, "stream grads: model.reduce");
    if (has(dag::NodeKind::all_gather) && random_.chance(0.5))
      source = with_line(source, "stream params: model.gather with priority: high");
    return source == program.source ? std::move(program) : read_program(context_, source);
  }

  Context& context_;
  Random& random_;
  const RandomProgramOptions& options_;
  std::uint32_t pp_ = 1, dp_ = 1, ep_ = 0, microbatches_ = 1, copies_ = 1, stages_ = 1;
  std::vector<std::string> calls_;    // of the model
  std::vector<std::string> regions_;  // the placed regions
  bool numbered_ = false;             // they are stages
  bool marked_ = false;               // the model marks its stages
  std::uint64_t seed_ = 0;            // of the train
};

}  // namespace

RandomProgram random_program(Context& context, Random& random,
                             const RandomProgramOptions& options) {
  return ProgramMaker(context, random, options).make();
}

RandomProgram read_program(Context& context, std::string source) {
  RandomProgram result{source, tensor::Graph(context), {}};
  DiagnosticSink sink(context.locations);
  const FileId file = context.locations.files().add("drawn.pipe", std::move(source));
  const sema::Program program = sema::analyse(file, source::MemoryFileSystem(), context, sink);
  std::optional<lower::Lowered> lowered;
  if (program.ok && program.trains.size() == 1)
    lowered = lower::lower_train(program, sema::TrainId::at(0), {}, context, sink);
  EXPECT_TRUE(lowered && sink.empty())
      << render_text(sink.sorted(), context.locations.files()) << result.source;
  if (lowered) {
    result.model = std::move(lowered->model);
    result.strategy = std::move(lowered->strategy);
  }
  return result;
}

std::string with_line(const std::string& source, const std::string& line) {
  const std::size_t end = source.rfind("}");
  return source.substr(0, end) + "    " + line + "\n" + source.substr(end);
}

}  // namespace piper::test
