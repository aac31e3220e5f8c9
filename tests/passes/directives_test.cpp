// Refusals of directives, with their messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "tests/support/compile.h"
#include "tests/support/golden.h"
#include "tests/support/sample_models.h"

namespace piper::test {
namespace {

using Say = void (*)(StrategyBuilder&);

struct Refusal {
  const char* name;
  Code code;
  tensor::Graph (*model)(Context&);
  Say say;
};

tensor::Graph mlp(Context& context) { return mlp_chain(context); }
tensor::Graph gpt(Context& context) { return small_gpt(context); }
tensor::Graph tied_towers(Context& context) { return two_towers(context, {.tied = true}); }
template <tensor::Op by>
tensor::Graph coupled(Context& context) {
  return coupled_model(context, by);
}
tensor::Graph tasks(Context& context) { return two_tasks(context, false); }
tensor::Graph tied_tasks(Context& context) { return two_tasks(context, true); }

directive::Replicate replicate(StrategyBuilder& build, std::vector<Symbol> axes) {
  directive::Replicate replicate;
  replicate.targets.push_back(build.selector({}));
  replicate.axes = std::move(axes);
  replicate.loc = build.next_line();
  return replicate;
}
Symbol axis(StrategyBuilder& build, std::size_t i) { return build.edit().mesh.axes[i].name; }

StrategyBuilder& recompute(StrategyBuilder& build, directive::Selector target) {
  return build.add(directive::Recompute{{std::move(target)}, build.next_line()});
}
StrategyBuilder& freeze(StrategyBuilder& build, directive::Selector target) {
  return build.add(directive::Freeze{{std::move(target)}, build.next_line()});
}
StrategyBuilder& tune(StrategyBuilder& build, directive::Selector target, double rate) {
  return build.add(directive::Tune{{std::move(target)}, rate, {}, build.next_line()});
}
directive::Selector part(directive::Selector selector, directive::CommClass part) {
  selector.part = part;
  return selector;
}

/// Every program stands on cluster(pp: 2, dp: 2).
const Refusal kRefusals[] = {
    {"unknown_region", Code::unknown_region, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).place({{"stge", 0}}, {{"pp", 0}}); }},
    {"unknown_region_of_partition", Code::unknown_region, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 2, {}, {{"laier", 0}}); }},
    {"index_out_of_range", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).place({{"stage", 7}}, {{"pp", 0}}); }},
    {"microbatch_out_of_range", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).place({{"stage", 0}, {"mb", 2}}, {{"pp", 0}}); }},
    {"parts_do_not_meet", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).place({{"stage", 0}, {"layer", 3}}, {{"pp", 0}}); }},
    {"replicated_instance", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"dp"}, {}, {{"stage", 0}, {"mb", 1}}); }},
    {"placed_half_of_whole_backward", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) {
       b.line(2, 2);
       directive::Place place{
           {b.selector({{"stage", 0}}, Pass::BW)}, b.devices({{"pp", 1}}), b.next_line()};
       b.add(place);
     }},
    {"placed_communication", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) {
       directive::Place place{{b.selector({{"stage", 0}})}, b.devices({{"pp", 0}}), b.next_line()};
       place.targets[0].part = directive::CommClass::send;
       b.line(2, 2).add(place);
     }},
    {"partitioned_pass", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) {
       directive::Partition partition{b.selector({}, Pass::F), {axis(b, 0), 2}, {}, b.next_line()};
       b.add(partition);
     }},
    {"partitioned_instance", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) {
       b.split({{"mb", 2}}).partition("part", 2, {}, {{"layer", 0}, {"mb", 0}});
     }},
    {"prefetch_of_whole_parameters", Code::nothing_to_prefetch, mlp,
     [](StrategyBuilder& b) {
       directive::Replicate sharded = replicate(b, {axis(b, 1)});
       sharded.zero = 2;
       sharded.prefetch = 2;
       b.line(2, 2).add(sharded);
     }},
    {"cut_gradients_once_per_step", Code::reduction_refused, mlp,
     [](StrategyBuilder& b) {
       directive::Replicate sharded = replicate(b, {axis(b, 1)});
       sharded.zero = 3;
       sharded.reduce = directive::Reduce::step;
       b.line(2, 2).add(sharded);
     }},
    {"whole_gradients_per_run", Code::reduction_refused, mlp,
     [](StrategyBuilder& b) {
       directive::Replicate sharded = replicate(b, {axis(b, 1)});
       sharded.zero = 1;
       sharded.reduce = directive::Reduce::unit;
       b.line(2, 2).add(sharded);
     }},
    {"cut_over_two_axes_differently", Code::zero_mixed, mlp,
     [](StrategyBuilder& b) { b.replicate({"dp"}, {}, {}, 3).replicate({"pp"}, {}, {}, 1); }},
    {"more_stages_than_operations", Code::partition_too_fine, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 100); }},
    {"no_stages", Code::not_positive, mlp, [](StrategyBuilder& b) { b.partition("stage", 0); }},
    {"sizes_do_not_add_up", Code::partition_sizes, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 2, {1, 2}); }},
    {"name_taken", Code::partition_name_taken, gpt,
     [](StrategyBuilder& b) { b.partition("block", 2, {}, {{"head", 0}}); }},
    {"model_marks_more", Code::partition_differs_from_model, mlp,
     [](StrategyBuilder& b) { b.partition("layer", 3); }},
    {"partition_of_no_instance", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { b.partition("part", 2, {}, {{"layer", 7}}); }},
    {"two_partitions", Code::partitioned_twice, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 2).partition("stage", 4); }},
    {"partitions_in_a_circle", Code::partition_conflict, mlp,
     [](StrategyBuilder& b) {
       b.partition("half", 2, {}, {{"third", 0}}).partition("third", 3, {}, {{"half", 0}});
     }},
    {"split_of_another_dimension", Code::unknown_split_dimension, gpt,
     [](StrategyBuilder& b) {
       b.add(directive::Split{axis(b, 0), {{axis(b, 1), 2}}, {}, b.next_line()});
     }},
    {"split_of_a_stage", Code::split_of_a_part, mlp,
     [](StrategyBuilder& b) {
       b.line(2, 2);
       std::get<directive::Split>(b.edit().directives[1])
           .targets.push_back(b.selector({{"stage", 0}}));
     }},
    {"split_twice", Code::dimension_split_twice, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).split({{"mb", 4}}); }},
    {"split_into_nothing", Code::not_positive, mlp,
     [](StrategyBuilder& b) { b.split({{"mb", 0}}); }},
    {"split_named_as_partition", Code::split_name_taken, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 2).split({{"stage", 2}}); }},
    {"split_named_as_region", Code::split_name_taken, gpt,
     [](StrategyBuilder& b) { b.split({{"mb", 2}, {"block", 2}}); }},
    {"microbatches_do_not_divide", Code::batch_does_not_divide, mlp,
     [](StrategyBuilder& b) { b.line(2, 3); }},
    {"replicas_do_not_divide", Code::batch_does_not_divide, mlp,
     [](StrategyBuilder& b) { b.line(2, 16).replicate({"dp"}); }},
    {"coupled_split", Code::coupled_operation, coupled<tensor::Op::softmax>,
     [](StrategyBuilder& b) { b.split({{"mb", 2}}); }},
    {"coupled_replicate", Code::coupled_operation, coupled<tensor::Op::softmax>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"coupled_by_mean_split", Code::coupled_operation, coupled<tensor::Op::sum>,
     [](StrategyBuilder& b) { b.split({{"mb", 2}}); }},
    {"coupled_by_mean", Code::coupled_operation, coupled<tensor::Op::sum>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"coupled_by_contract", Code::coupled_operation, coupled<tensor::Op::contract>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"coupled_by_max", Code::coupled_operation, coupled<tensor::Op::max>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"coupled_by_layer_norm", Code::coupled_operation, coupled<tensor::Op::layer_norm>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"coupled_by_rename", Code::coupled_operation, coupled<tensor::Op::rename>,
     [](StrategyBuilder& b) { b.replicate({"dp"}); }},
    {"backward_both_ways", Code::backward_named_both_ways, mlp,
     [](StrategyBuilder& b) {
       b.line(2, 2).replicate({"dp"}).rank({{"pp", 0}});
       for (const Pass pass : {Pass::F, Pass::B})
         b.op(pass, {{"stage", 0}, {"mb", 0}}).op(pass, {{"stage", 0}, {"mb", 1}});
       b.op(Pass::BW, {{"stage", 0}, {"mb", 0}});
     }},
    {"unplaced_stage", Code::placed_nowhere, mlp,
     [](StrategyBuilder& b) {
       b.partition("stage", 2).split({{"mb", 2}}).place({{"stage", 0}}, {{"pp", 0}});
     }},
    {"unplaced_microbatch", Code::placed_nowhere, mlp,
     [](StrategyBuilder& b) {
       b.partition("stage", 1).split({{"mb", 2}}).place({{"stage", 0}, {"mb", 0}}, {{"pp", 0}});
     }},
    {"placed_on_two", Code::placed_twice, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).place({{"stage", 0}}, {{"pp", 1}}); }},
    {"unknown_axis", Code::unknown_axis, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"tp"}); }},
    {"empty_bucket", Code::not_positive, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"dp"}, 0); }},
    {"empty_window", Code::not_positive, mlp,
     [](StrategyBuilder& b) {
       directive::Stream stream{b.edit().mesh.axes[0].name,
                                {part(b.selector({}), directive::CommClass::send)},
                                0u,
                                directive::Priority::normal,
                                b.next_line()};
       b.line(2, 2).add(stream);
     }},
    {"too_much_zero", Code::setting_out_of_range, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"dp"}, {}, {}, 4); }},
    {"sizes_of_other_stages", Code::sizes_do_not_match, mlp,
     [](StrategyBuilder& b) { b.partition("stage", 2, {1, 2, 1}); }},
    {"one_name_for_two_cuts", Code::partition_conflict, mlp,
     [](StrategyBuilder& b) { b.partition("part", 2).partition("part", 2, {}, {{"layer", 0}}); }},
    {"split_into_one_twice", Code::split_conflict, mlp,
     [](StrategyBuilder& b) { b.split({{"mb", 2}, {"mb", 2}}); }},
    {"two_bucket_sizes", Code::replicated_twice, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"dp"}, 100).replicate({"dp"}, 200); }},
    {"replicated_over_stages", Code::replicate_without_effect, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"pp"}); }},
    {"devices_that_do_not_pair", Code::devices_do_not_pair, mlp,
     [](StrategyBuilder& b) {
       b.partition("stage", 2)
           .place({{"stage", 0}}, {{"pp", 0}})
           .place({{"stage", 1}}, {{"pp", 1}, {"dp", 0}});
     }},
    {"one_stage_replicated", Code::layouts_differ, mlp,
     [](StrategyBuilder& b) { b.line(2, 2).replicate({"dp"}, {}, {{"stage", 0}}); }},
    {"unused_axis", Code::repeated_work, mlp, [](StrategyBuilder& b) { b.line(2, 2); }},
    {"one_task_replicated", Code::repeated_work, tasks,
     [](StrategyBuilder& b) {
       b.place({{"first", 0}}, {{"pp", 0}})
           .place({{"second", 0}}, {{"pp", 1}})
           .replicate({"dp"}, {}, {{"first", 0}});
     }},
    {"owners_overlap", Code::owners_overlap, tied_tasks,
     [](StrategyBuilder& b) { b.place({{"first", 0}}, {{"pp", 0}}).place({{"second", 0}}, {}); }},
    {"tied_towers_overlap", Code::owners_overlap, tied_towers,
     [](StrategyBuilder& b) {
       b.place({{"towers", 0}, {"left", 0}}, {{"pp", 0}})
           .place({{"towers", 0}, {"right", 0}}, {{"dp", 0}})
           .place({{"towers", 0}}, {});
     }},
    {"state_cut_and_whole", Code::state_sharded_differently, tied_tasks,
     [](StrategyBuilder& b) { b.replicate({"dp"}, {}, {{"first", 0}}, 1).replicate({"dp"}); }},
    {"one_user_prefetches_more", Code::state_sharded_differently, tied_tasks,
     [](StrategyBuilder& b) {
       for (const std::uint32_t prefetch : {1u, 2u}) {
         directive::Replicate sharded = replicate(b, {axis(b, 1)});
         if (prefetch == 1) sharded.targets = {b.selector({{"first", 0}})};
         sharded.zero = 3;
         sharded.prefetch = prefetch;
         b.add(sharded);
       }
     }},
    {"one_user_replicated", Code::gradients_reduced_differently, tied_tasks,
     [](StrategyBuilder& b) { b.replicate({"dp"}, {}, {{"first", 0}}); }},
    {"nothing_to_recompute", Code::nothing_to_recompute, gpt,
     [](StrategyBuilder& b) { recompute(b, b.selector({{"embed", 0}})); }},
    {"recomputed_pass", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) { recompute(b.line(2, 2), b.selector({{"layer", 0}}, Pass::F)); }},
    {"recomputed_communication", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) {
       recompute(b.line(2, 2), part(b.selector({{"stage", 0}}), directive::CommClass::send));
     }},
    {"recomputed_unknown", Code::unknown_region, mlp,
     [](StrategyBuilder& b) { recompute(b.line(2, 2), b.selector({{"laier", 0}})); }},
    {"recomputed_microbatch_out_of_range", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { recompute(b.line(2, 2), b.selector({{"layer", 0}, {"mb", 2}})); }},
    {"recomputed_parts_apart", Code::selector_matches_nothing, mlp,
     [](StrategyBuilder& b) { recompute(b.line(2, 2), b.selector({{"stage", 0}, {"layer", 3}})); }},
    {"placed_again", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) {
       recompute(b.line(2, 2), b.selector({{"layer", 0}}))
           .place({{"layer", 0}}, {{"pp", 0}}, Pass::R);
     }},
    {"frozen_without_weights", Code::nothing_to_freeze, tied_towers,
     [](StrategyBuilder& b) { freeze(b, b.selector({{"join", 0}})); }},
    {"frozen_model", Code::nothing_left_to_train, mlp,
     [](StrategyBuilder& b) { freeze(b, b.selector({})); }},
    {"frozen_stages", Code::nothing_left_to_train, mlp,
     [](StrategyBuilder& b) {
       freeze(freeze(b.line(2, 2), b.selector({{"stage", 0}})), b.selector({{"stage", 1}}));
     }},
    {"frozen_microbatch", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) { freeze(b.line(2, 2), b.selector({{"layer", 0}, {"mb", 0}})); }},
    {"frozen_pass", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) { freeze(b.line(2, 2), b.selector({{"layer", 0}}, Pass::BW)); }},
    {"frozen_unknown", Code::unknown_region, mlp,
     [](StrategyBuilder& b) { freeze(b.line(2, 2), b.selector({{"laier", 0}})); }},
    {"tuned_without_weights", Code::nothing_to_tune, tied_towers,
     [](StrategyBuilder& b) { tune(b, b.selector({{"join", 0}}), 0.5); }},
    {"tuned_and_frozen", Code::nothing_to_tune, mlp,
     [](StrategyBuilder& b) {
       tune(freeze(b, b.selector({{"layer", 0}})), b.selector({{"layer", 0}}), 0.5);
     }},
    {"tuned_twice", Code::tuned_twice, mlp,
     [](StrategyBuilder& b) {
       tune(tune(b, b.selector({{"layer", 0}}), 0.5), b.selector({}), 0.25);
     }},
    {"tuned_microbatch", Code::selector_not_allowed, mlp,
     [](StrategyBuilder& b) { tune(b.line(2, 2), b.selector({{"layer", 0}, {"mb", 0}}), 0.5); }},
    {"tuned_unknown", Code::unknown_region, mlp,
     [](StrategyBuilder& b) { tune(b.line(2, 2), b.selector({{"laier", 0}}), 0.5); }},
    {"tuned_below_zero", Code::setting_out_of_range, mlp,
     [](StrategyBuilder& b) { tune(b, b.selector({{"layer", 0}}), -0.5); }},
    {"norm_over_unlike_sets", Code::sets_do_not_gather, tasks,
     [](StrategyBuilder& b) { b.place({{"first", 0}}, {{"pp", 0}}).place({{"second", 0}}, {}); }},
};

/// The message itself says what to write.
constexpr Code kWithoutHint[] = {Code::selector_matches_nothing, Code::not_positive,
                                 Code::sizes_do_not_match, Code::setting_out_of_range};

TEST(Directives, RefusalsSayWhatAndWhere) {
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    Context context;
    DiagnosticSink sink(context.locations);
    StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
    refusal.say(build);
    tensor::Graph model = refusal.model(context);
    passes::Options options;
    options.stop_at = dag::Level::communicating;
    options.verify_each = true;
    const std::optional<dag::Dag> dag = test::compile(model, build.strategy(), sink, options);
    EXPECT_EQ(dag.has_value(), severity_of(refusal.code) == Severity::warning);
    const std::vector<Diagnostic> diagnostics = sink.sorted();
    ASSERT_FALSE(diagnostics.empty());
    for (const Diagnostic& diagnostic : diagnostics) {
      if (diagnostic.severity != severity_of(refusal.code)) continue;
      EXPECT_EQ(diagnostic.code, refusal.code);
      EXPECT_TRUE(!diagnostic.hint.empty() ||
                  std::find(std::begin(kWithoutHint), std::end(kWithoutHint), refusal.code) !=
                      std::end(kWithoutHint));
    }
    expect_golden(std::string("tests/passes/testdata/directives/") + refusal.name + ".out",
                  render_text(diagnostics, context.locations.files()));
  }
}

TEST(Directives, ADefaultMayBeWritten) {
  for (const std::uint32_t zero : {0u, 1u, 2u, 3u}) {
    Context context;
    DiagnosticSink sink(context.locations);
    StrategyBuilder build(context, {{"pp", 2}, {"dp", 2}});
    directive::Replicate line = replicate(build, {axis(build, 1)});
    line.zero = zero;
    line.prefetch = 0;
    build.line(2, 2).add(line);
    const tensor::Graph model = mlp(context);
    EXPECT_TRUE(test::compile(model, build.strategy(), sink, {}).has_value())
        << zero << render_text(sink.sorted(), context.locations.files());
  }
}

}  // namespace
}  // namespace piper::test
