#include "passes/selectors/check_selectors.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>

#include "llvm/ADT/DenseMap.h"
#include "passes/selectors/select.h"
#include "passes/selectors/split_dimensions.h"
#include "passes/selectors/used_names.h"

namespace piper::passes {

namespace {

bool is_the_model(const Nameable& nameable, Symbol name, bool all) {
  return all && nameable.context.text(name) == "model";
}

/// The indices of each name.
class Names {
 public:
  Names(const Nameable& nameable, const directive::Strategy& strategy) {
    for (const auto& [name, region] : nameable.regions) exists_[name] = region.exists;
    for (const directive::Directive& directive : strategy.directives) {
      const auto* partition = std::get_if<directive::Partition>(&directive);
      if (partition == nullptr || !nameable.of_model) continue;
      // For a name that the model has too, the model's indices are used.
      std::vector<bool>& parts = exists_[partition->into.name];
      parts.resize(std::max<std::size_t>(parts.size(), partition->into.extent), true);
    }
    regions_ = texts(nameable.context);
    for (const directive::NamedExtent& dim : dimensions(strategy))
      exists_[dim.name].assign(dim.extent, true);
    all_ = texts(nameable.context);
  }

  /// Null if nothing has that name.
  const std::vector<bool>* find(Symbol name) const {
    const auto found = exists_.find(name);
    return found == exists_.end() ? nullptr : &found->second;
  }
  std::span<const std::string_view> regions() const { return regions_; }
  std::span<const std::string_view> all() const { return all_; }

 private:
  std::vector<std::string_view> texts(const Context& context) const {
    std::vector<std::string_view> texts;
    for (const auto& [name, exists] : exists_) texts.push_back(context.text(name));
    std::sort(texts.begin(), texts.end());
    return texts;
  }

  llvm::DenseMap<Symbol, std::vector<bool>> exists_;
  std::vector<std::string_view> regions_, all_;  // sorted
};

class NameCheck {
 public:
  NameCheck(const Nameable& nameable, const directive::Strategy& strategy,
            const llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink)
      : nameable_(nameable),
        names_(nameable, strategy),
        uncertain_(uncertain),
        sink_(sink),
        errors_(sink.error_count()) {}

  void region(const directive::Partition& partition) {
    if (!nameable_.of_model) return;
    for (const directive::Coordinate& c : partition.region.coordinates) {
      check(UsedCoordinate{c.name, c.all, c.indices, directive::narrowest(c.loc, partition.loc)},
            names_.regions());
    }
  }
  void operator()(const UsedCoordinate& used) {
    if (used.loose) return rest(used);
    if (used.cuts || nameable_.of_model) check(used, names_.all());
  }
  llvm::DenseSet<Symbol> take_unknown() { return std::move(unknown_); }

 private:
  // Maximum number of errors, because the user sees only a page.
  static constexpr std::size_t kEnough = 1000;

  void check(const UsedCoordinate& used, std::span<const std::string_view> known) {
    if (sink_.error_count() > errors_ + kEnough || is_the_model(nameable_, used.name, used.all))
      return;
    const std::string_view name = nameable_.context.text(used.name);
    const std::vector<bool>* const exists = names_.find(used.name);
    if (exists == nullptr) {
      if (!unknown_.insert(used.name).second || has_no_work(used, {})) return;
      report_unknown_name(sink_, used.place(), name, known, nameable_.model);
      return;
    }
    if (used.all || uncertain_.contains(used.name)) return;
    if (used.indices.empty()) {
      sink_.report(Code::selector_matches_nothing, used.place(),
                   "`{}[]` matches nothing: the list of indices is empty", name);
      return;
    }
    const auto wrong = std::find_if(used.indices.begin(), used.indices.end(), [&](std::uint32_t i) {
      return i >= exists->size() || !(*exists)[i];
    });
    if (wrong != used.indices.end() && !has_no_work(used, *wrong))
      report_missing_index(sink_, used.place(), name, *wrong, exists->size());
  }

  /// Reports and returns true if the model has the region, or the one of that index, and a step has
  /// no work of it.
  bool has_no_work(const UsedCoordinate& used, std::optional<std::uint32_t> index) {
    const auto find_in =
        [&](const llvm::DenseMap<Symbol, Nameable::Name>& regions) -> const Nameable::Name* {
      const auto found = regions.find(used.name);
      return found == regions.end() || (index && (*index >= found->second.exists.size() ||
                                                  !found->second.exists[*index]))
                 ? nullptr
                 : &found->second;
    };
    const std::string region = std::string(nameable_.context.text(used.name)) +
                               (index ? "[" + std::to_string(*index) + "]" : "");
    if (const Nameable::Name* const found = find_in(nameable_.without_loss)) {
      sink_
          .report(Code::region_without_loss, used.place(),
                  "`{}` reaches no loss, so a step has no work of it", region)
          .related(found->loc, "its results are on the way to no `loss`")
          .hint(
              "use its result on the way to a `loss`, or remove the call and the lines that name it");
      return true;
    }
    const Nameable::Name* const found = find_in(nameable_.integer_names);
    if (found == nullptr) return false;
    sink_
        .report(Code::region_without_loss, used.place(),
                "`{}` only gives integers another name, so a step has no work of it", region)
        .related(found->loc, "each reader of the integers reads the input itself")
        .hint("remove `{}` from this line, and name the region that reads its result", region);
    return true;
  }

  /// `rest` names loose work, so no region or dimension may have that name.
  void rest(const UsedCoordinate& used) {
    if (rest_reported_ || !std::binary_search(names_.all().begin(), names_.all().end(), "rest"))
      return;
    rest_reported_ = true;
    sink_
        .report(
            Code::rest_is_a_region, used.place(),
            "`rest` names the loose work of a region here, but the program has regions or a dimension of that name")
        .hint("give these another name");
  }

  const Nameable& nameable_;
  const Names names_;
  const llvm::DenseSet<Symbol>& uncertain_;
  DiagnosticSink& sink_;
  const std::size_t errors_;
  llvm::DenseSet<Symbol> unknown_;
  bool rest_reported_ = false;
};

}  // namespace

llvm::DenseSet<Symbol> check_names(const Nameable& nameable, const directive::Strategy& strategy,
                                   const llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink) {
  NameCheck check(nameable, strategy, uncertain, sink);
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive))
      check.region(*partition);
  }
  for_each_coordinate(strategy, [&](const UsedCoordinate& used) { check(used); });
  return check.take_unknown();
}

bool check_parts_meet(const Nameable& nameable, const directive::Strategy& strategy,
                      DiagnosticSink& sink) {
  const std::size_t errors = sink.error_count();
  llvm::DenseSet<Symbol> dims;
  for (const directive::NamedExtent& dim : dimensions(strategy)) dims.insert(dim.name);
  std::vector<const directive::Coordinate*> regions;
  for (const directive::Directive& directive : strategy.directives) {
    if (directive::names_weights(directive) && !nameable.of_model) continue;
    for (const directive::Selector& selector : directive::targets_of(directive)) {
      regions.clear();
      for (const directive::Coordinate& c : selector.coordinates) {
        if (!c.rest && !dims.contains(c.name) && !is_the_model(nameable, c.name, c.all))
          regions.push_back(&c);
      }
      const auto meets = [&](RegionId region) {
        return std::all_of(regions.begin(), regions.end(), [&](const directive::Coordinate* c) {
          return nameable.has(region, *c);
        });
      };
      if (regions.size() < 2 ||
          std::any_of(nameable.innermost.begin(), nameable.innermost.end(), meets))
        continue;
      directive::Selector coordinates = selector;
      coordinates.pass.reset();
      coordinates.part = directive::CommClass::none;
      report_parts_apart(sink, selector.loc, print_selector(coordinates, nameable.context.symbols));
    }
  }
  return sink.error_count() == errors;
}

}  // namespace piper::passes
