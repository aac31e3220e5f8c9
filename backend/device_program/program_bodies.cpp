#include "backend/device_program/program_bodies.h"

#include <initializer_list>
#include <string>

#include "backend/kernel/update_body.h"
#include "ir/dag/local_body.h"

namespace piper::backend {

using dag::Dag;

namespace {

/// Buckets of one shape share a body, so it is not named by a bucket.
std::string numbered(std::string name, std::size_t count) {
  return count == 1 ? name : name + "." + std::to_string(count - 1);
}

void put_in_shards(KernelBody& body, std::initializer_list<BufferIndex> ports) {
  if (body.intervals.empty()) body.intervals = {"element"};
  for (const BufferIndex port : ports) body.buffers[port].interval = 0;
}

/// Factors of elements are those of the rank's interval of the bucket.
void factors_of_shard(KernelBody& body) {
  for (KernelStep& step : body.steps) {
    for (Statement& statement : std::get<Kernel>(step).statements) {
      if (statement.code != Code::piecewise) continue;
      put_in_shards(body, {});
      statement.interval = 0;
    }
  }
}

}  // namespace

ProgramBodies::ProgramBodies(const Dag& dag, Target target, std::vector<KernelBody>& list)
    : dag_(dag), target_(target), list_(list) {
  if (dag.settings.optimizer) optimizer_ = *dag.settings.optimizer;
  norm_order_ = dag::norm_order(dag);
  for (const dag::Body& body : dag.bodies)
    of_chunk_.push_back({uneven_shardings(body, dag.mesh), {}});
}

std::uint32_t ProgramBodies::chunk(dag::BodyId id, std::span<const std::uint32_t> coordinates) {
  ChunkBodies& known = of_chunk_[id.index()];
  const auto [entry, fresh] =
      known.bodies.try_emplace(dag::local_extents(known.shardings, dag_.mesh, coordinates), 0);
  if (fresh) {
    const dag::Body body = local_body(dag_.bodies[id.index()], dag_.mesh, coordinates);
    entry->second = add(build_kernels(body, target_),
                        numbered(std::string(dag_.context->text(body.name)), known.bodies.size()));
  }
  return entry->second;
}

std::uint32_t ProgramBodies::update(const dag::Bucket& bucket, std::int64_t elements) {
  const dag::BucketLayout layout = bucket_layout(dag_, bucket);
  const UpdateRule rule = update_rule(dag_, bucket);
  std::vector<Made>& alike = updates_[{layout.is_sharded, elements}];
  for (const Made& known : alike) {
    if (known.rates == rule.rates && known.decays == rule.decays) return known.body;
  }
  const UpdateBody made = update_body(*dag_.context, rule, layout.parameters, elements);
  KernelBody body = update_kernels(made, target_);
  // The rank works on its shard; states that are not sharded are full buffers, the optimizer's
  // state is only the rank's shard.
  if (layout.sharded(dag::BucketState::slot)) {
    if (!layout.sharded(dag::BucketState::parameters)) put_in_shards(body, {0, body.num_inputs});
    if (!layout.sharded(dag::BucketState::gradients)) put_in_shards(body, {1});
    factors_of_shard(body);
  }
  alike.push_back(
      {rule.rates, rule.decays, add(std::move(body), numbered("update", ++num_updates_))});
  return alike.back().body;
}

std::uint32_t ProgramBodies::sum_squares(const dag::Bucket& bucket) {
  const std::vector<std::int64_t> elements = squared_elements(dag_, bucket);
  const dag::BucketLayout layout = bucket_layout(dag_, bucket);
  // The gradients of which a shard is squared.
  const bool whole =
      layout.sharded(dag::BucketState::slot) && !layout.sharded(dag::BucketState::gradients);
  const auto [entry, fresh] = sums_.try_emplace({whole, elements}, 0);
  if (fresh) {
    KernelBody body =
        build_kernels(sum_squares_body(*dag_.context, layout.sums, elements), target_);
    if (whole) put_in_shards(body, {0});
    entry->second = add(std::move(body), numbered("sum_squares", sums_.size()));
  }
  return entry->second;
}

std::uint32_t ProgramBodies::norm() {
  if (norm_ == kNone)
    norm_ = add(build_kernels(norm_body(*dag_.context, norm_order_.size(), dag_.settings), target_),
                "norm");
  return norm_;
}

std::uint32_t ProgramBodies::add(KernelBody body, std::string_view name) {
  body.name = name;
  number_shapes(body, shapes_);
  list_.push_back(std::move(body));
  return static_cast<std::uint32_t>(list_.size() - 1);
}

}  // namespace piper::backend
