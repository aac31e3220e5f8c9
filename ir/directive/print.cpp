#include "ir/directive/print.h"

#include "ir/directive/parse.h"
#include "ir/directive/text_reader.h"

namespace piper::directive {

namespace {

llvm::StringRef ref(std::string_view text) { return {text.data(), text.size()}; }

/// Region and dimension names; quoted if the plain word would be read as something else.
void print_coordinate(llvm::raw_ostream& os, std::string_view name, bool rest) {
  if (rest) {
    os << ".rest";
    return;
  }
  if (parse_pass(name) || name == "model" || is_directive_word(name)) {
    print_string(os, name);
  } else {
    print_name(os, name);
  }
}

class Printer {
 public:
  Printer(llvm::raw_ostream& os, const Surroundings& around, unsigned indent) : os_(os), around_(around), indent_(indent) {}

  void operator()(const Partition& partition) {
    os_ << "partition ";
    selector(partition.region);
    os_ << " into ";
    extents({partition.into});
    if (!partition.sizes.empty()) {
      os_ << " with sizes: [";
      for (std::size_t i = 0; i < partition.sizes.size(); ++i) os_ << (i > 0 ? ", " : "") << partition.sizes[i];
      os_ << ']';
    }
    location(partition.loc);
  }

  void operator()(const Split& split) {
    os_ << "split ";
    symbol(split.dim);
    os_ << " into ";
    extents(split.into);
    if (!split.targets.empty()) os_ << " in ";
    selectors(split.targets);
    location(split.loc);
  }

  void operator()(const Place& place) {
    os_ << "place ";
    selectors(place.targets);
    os_ << " on ";
    devices(place.devices);
    if (place.depth > 0) os_ << " with depth: " << place.depth;
    location(place.loc);
  }

  void operator()(const Replicate& replicate) {
    os_ << "replicate ";
    selectors(replicate.targets);
    os_ << " over ";
    for (std::size_t i = 0; i < replicate.axes.size(); ++i) {
      if (i > 0) os_ << ", ";
      symbol(replicate.axes[i]);
    }
    os_ << " with zero: " << replicate.zero;
    if (replicate.bucket_bytes) os_ << ", bucket: " << *replicate.bucket_bytes;
    if (replicate.prefetch) os_ << ", prefetch: " << *replicate.prefetch;
    if (replicate.reduce) os_ << ", reduce: " << llvm::StringRef(reduce_name(*replicate.reduce));
    location(replicate.loc);
  }

  void operator()(const Stream& stream) {
    os_ << "stream ";
    symbol(stream.name);
    os_ << ": ";
    selectors(stream.targets);
    if (stream.window) os_ << " with window: " << *stream.window;
    if (stream.priority == Priority::high) os_ << (stream.window ? ", " : " with ") << "priority: high";
    location(stream.loc);
  }

  void operator()(const Recompute& recompute) { treat("recompute ", recompute.targets, recompute.loc); }
  void operator()(const Offload& offload) {
    os_ << "offload ";
    selectors(offload.targets);
    os_ << " with window: " << offload.window;
    if (offload.what == Offload::What::optimizer) os_ << ", what: optimizer";
    location(offload.loc);
  }
  void operator()(const Freeze& freeze) { treat("freeze ", freeze.targets, freeze.loc); }

  void operator()(const Require& require) {
    os_ << "require " << llvm::StringRef(kMeasureNames[static_cast<std::size_t>(require.measure)]) << ' '
        << llvm::StringRef(kCompareNames[static_cast<std::size_t>(require.compare)]) << ' ';
    print_number(os_, require.bound);
    if (!require.message.empty()) {
      os_ << " else ";
      print_string(os_, require.message);
    }
    location(require.loc);
  }

  void operator()(const Order& order) {
    order_ = &order;
    os_ << "order {\n";
    for (const RankSteps& rank : order.ranks) {
      os_.indent(indent_ + 2) << "rank ";
      devices(rank.devices);
      location(rank.loc);
      os_ << " {\n";
      for (std::uint32_t i = 0; i < rank.num_steps; ++i) {
        os_.indent(indent_ + 4);
        step(order.children[rank.first_step + i]);
        os_ << '\n';
      }
      os_.indent(indent_ + 2) << "}\n";
    }
    for (const Order::Trim& trim : order.trims) {
      os_.indent(indent_ + 2) << "trim ";
      symbol(trim.dim);
      os_ << ' ' << trim.bound;
      location(trim.loc);
      os_ << '\n';
    }
    os_.indent(indent_) << "}";
    location(order.loc);
  }

  void selector(const Selector& selector) {
    print(selector, os_, around_.context.symbols);
    location(selector.loc);
  }

 private:
  void symbol(Symbol name) { print_name(os_, around_.context.text(name)); }
  void devices(DeviceSetId id) { print_device_set(os_, around_.device_sets[id], around_.mesh, around_.context.symbols); }
  void location(LocId loc) {
    if (around_.locations && loc.valid()) os_ << ' ' << around_.context.locations.print(loc);
  }
  void extents(const std::vector<NamedExtent>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) os_ << ", ";
      symbol(list[i].name);
      os_ << ": " << list[i].extent;
    }
  }
  void treat(llvm::StringRef keyword, const std::vector<Selector>& targets, LocId loc) {
    os_ << keyword;
    selectors(targets);
    location(loc);
  }
  void selectors(const std::vector<Selector>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) os_ << ", ";
      selector(list[i]);
    }
  }

  /// Prints operations, those of one step separated by commas, and braces; a group inside a group gets braces of its own.
  void step(std::uint32_t index) {
    const OrderStep& step = order_->steps[index];
    switch (step.kind) {
      case OrderStep::Kind::op:
        for (std::uint32_t i = 0; i < step.count; ++i) {
          if (i > 0) os_ << ", ";
          op(order_->ops[step.first + i]);
        }
        break;
      case OrderStep::Kind::sequence:
        os_ << "{ ";
        children(step, "; ");
        os_ << " }";
        break;
      case OrderStep::Kind::group:
        os_ << "( ";
        children(step, " & ");
        os_ << " )";
        break;
    }
    if (step.kind != OrderStep::Kind::op || step.loc != order_->ops[step.first + step.count - 1].loc) location(step.loc);
  }

  void children(const OrderStep& parent, llvm::StringRef separator) {
    for (std::uint32_t i = 0; i < parent.count; ++i) {
      if (i > 0) os_ << separator;
      step(order_->children[parent.first + i]);
    }
  }

  void op(const OrderOp& op) {
    os_ << ref(pass_name(op.pass));
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const OrderCoordinate& each = order_->coordinates[op.first_coordinate + i];
      os_ << ' ';
      print_coordinate(os_, around_.context.text(each.name), each.rest);
      if (!each.all) os_ << '[' << each.index << ']';
    }
    if (op.part != Part::none) os_ << " ." << ref(part_name(op.part));
    location(op.loc);
  }

  llvm::raw_ostream& os_;
  const Surroundings& around_;
  unsigned indent_;
  const Order* order_ = nullptr;
};

}  // namespace

void print(const Selector& selector, llvm::raw_ostream& os, const SymbolTable& symbols) {
  const char* separator = "";
  if (selector.pass) {
    os << ref(pass_name(*selector.pass));
    separator = " ";
  }
  if (selector.coordinates.empty() || selector.coordinates.front().rest) {
    os << separator << "model";
    separator = " ";
  }
  for (const Coordinate& coordinate : selector.coordinates) {
    os << separator;
    separator = " ";
    print_coordinate(os, symbols.text(coordinate.name), coordinate.rest);
    if (coordinate.all) continue;
    os << '[';
    for (std::size_t i = 0; i < coordinate.indices.size(); ++i) os << (i > 0 ? ", " : "") << coordinate.indices[i];
    os << ']';
  }
  if (selector.part != Part::none) os << " ." << ref(part_name(selector.part));
}

void print(const Directive& directive, llvm::raw_ostream& os, const Surroundings& surroundings, unsigned indent) {
  os.indent(indent);
  std::visit(Printer(os, surroundings, indent), directive);
  os << '\n';
}

std::string print(const Directive& directive, const Surroundings& surroundings) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(directive, os, surroundings);
  os.flush();
  return text;
}

namespace {

void print(const Data& data, llvm::raw_ostream& os, const Context& context) {
  if (data.kind != Data::Kind::synthetic) {
    os << (data.kind == Data::Kind::bytes ? "bytes(" : "arrays(");
    print_string(os, data.path);
    os << ", ";
  } else {
    os << "synthetic(classes: " << data.classes << ", ";
  }
  os << "batch: " << data.batch;
  for (const auto& [name, extent] : data.extents) {
    os << ", ";
    print_name(os, context.text(name));
    os << ": " << extent;
  }
  if (data.batches > 0) os << ", batches: " << data.batches;
  os << ')';
}

void print(const Optimizer& optimizer, llvm::raw_ostream& os) {
  constexpr llvm::StringRef kRates[] = {"constant", "cosine", "linear"};
  const auto field = [&](llvm::StringRef name, double value) {
    os << ", " << name << ": ";
    print_number(os, value);
  };
  os << llvm::StringRef(kOptimizerNames[static_cast<std::size_t>(optimizer.kind)]) << "(lr: " << kRates[static_cast<std::size_t>(optimizer.lr.kind)] << '(';
  print_number(os, optimizer.lr.base);
  os << ", warmup: " << optimizer.lr.warmup;
  field("floor", optimizer.lr.floor);
  os << ')';
  switch (optimizer.kind) {
    case Optimizer::Kind::sgd: field("momentum", optimizer.momentum); break;
    case Optimizer::Kind::adamw:
      field("beta1", optimizer.beta1);
      field("beta2", optimizer.beta2);
      field("eps", optimizer.eps);
      break;
  }
  field("weight_decay", optimizer.weight_decay);
  if (optimizer.clip) field("clip", *optimizer.clip);
  os << ')';
}

}  // namespace

void print(const Settings& settings, llvm::raw_ostream& os, const Context& context, bool locations) {
  const auto location = [&](LocId loc) {
    if (locations && loc.valid()) os << ' ' << context.locations.print(loc);
  };
  os << "train ";
  print_name(os, settings.train);
  location(settings.loc);
  os << " {\n  steps " << settings.steps << "\n  dtype " << ref(tensor::dtype_name(settings.dtype)) << "\n  seed " << settings.seed
     << '\n';
  if (settings.device != Platform::cpu) os << "  device " << kPlatformNames[static_cast<std::size_t>(settings.device)] << '\n';
  if (settings.data) {
    os << "  data ";
    print(*settings.data, os, context);
    location(settings.data->loc);
    os << '\n';
  }
  if (settings.held_out) {
    os << "  held_out ";
    print(*settings.held_out, os, context);
    location(settings.held_out->loc);
    os << '\n';
  }
  if (settings.optimizer) {
    os << "  optim ";
    print(*settings.optimizer, os);
    location(settings.optimizer->loc);
    os << '\n';
  }
  os << "}\n";
}

}  // namespace piper::directive
