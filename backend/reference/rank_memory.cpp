#include "backend/reference/rank_memory.h"

#include <utility>

#include "ir/alignment.h"
#include "ir/dag/local_type.h"

namespace piper::backend {

RankMemory::RankMemory(const dag::Dag& dag_in) : dag(dag_in), world(dag_in.mesh.devices()) {
  for (std::uint64_t r = 0; r < world; ++r) coordinates.push_back(coordinates_of(dag.mesh, r));
  std::size_t ports = 0;
  for (const dag::Node& node : dag.nodes) {
    first_port.push_back(ports);
    ports += node.num_outputs;
  }
  values.resize(ports);
  for (auto& each : values) each.resize(world);
  lay_out_state();
}

void RankMemory::lay_out_state() {
  copies.resize(dag.params.size());
  gradients.resize(dag.params.size());
  std::int64_t bytes = 0;
  const auto add = [&](const dag::Bucket& bucket, std::size_t owner) {
    for (const tensor::ParamId id : bucket.params) {
      const tensor::Type& type = dag.param_types[id.index()];
      PiperParam param{};
      param.offset = static_cast<std::uint64_t>(bytes);
      bytes += aligned(type.bytes());
      param.grad_offset = static_cast<std::uint64_t>(bytes);
      bytes += aligned(gradient_bytes(id));
      for (std::uint32_t s = 0; s < PIPER_MAX_SLOTS; ++s) {
        param.slot_offsets[s] = s < slots(id) ? static_cast<std::uint64_t>(bytes) : PIPER_NO_OFFSET;
        if (s < slots(id)) bytes += aligned(gradient_bytes(id));
      }
      if (slots(id) > 0) param.average_slot = dag::average_slot(dag.settings);
      param.elements = static_cast<std::uint64_t>(type.elements());
      param.dtype = abi_dtype(type.dtype);
      param.sum_dtype = abi_dtype(tensor::wide(type.dtype));
      param.init = abi_init(dag.params[id.index()].init.kind);
      param.scale = dag.params[id.index()].init.scale;
      param.counted = owner == 0;
      param.interval = PIPER_ALL_POSITIONS;
      copies[id.index()].push_back(static_cast<std::uint32_t>(params.size()));
      names.emplace_back(dag.context->text(dag.params[id.index()].name));
      std::vector<std::int64_t> extents;
      for (const tensor::Dim& dim : type.dims) extents.push_back(dim.extent);
      dims.push_back(std::move(extents));
      params.push_back(param);
      gradients[id.index()].resize(world);
    }
  };
  for (std::size_t owner = 0, more = 1; more; ++owner) {
    more = 0;
    for (const dag::Bucket& bucket : dag.buckets) {
      if (owner < bucket.owners.size()) add(bucket, owner);
      more += owner + 1 < bucket.owners.size();
    }
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    params[i].name = names[i].c_str();
    params[i].dims = dims[i].data();
    params[i].num_dims = static_cast<std::uint32_t>(dims[i].size());
  }
  state = allocate(bytes);
}

const PiperParam& RankMemory::copy_at(tensor::ParamId param, std::uint64_t r) const {
  for (const dag::Bucket& bucket : dag.buckets) {
    for (const tensor::ParamId id : bucket.params) {
      if (id != param) continue;
      for (std::size_t owner = 0; owner < bucket.owners.size(); ++owner) {
        if (on(bucket.owners[owner], r)) return params[copies[param.index()][owner]];
      }
    }
  }
  return params[copies[param.index()][0]];
}

unsigned char* RankMemory::gradient_at(tensor::ParamId param, std::uint64_t r) {
  Memory& memory = gradients[param.index()][r];
  if (!memory) memory = allocate(gradient_bytes(param));
  return memory.get();
}

unsigned char* RankMemory::output(dag::NodeId node, std::uint32_t port, std::uint64_t r) {
  Memory& memory = values[first_port[node.index()] + port][r];
  if (!memory) memory = allocate(planned_bytes(dag, {node, port}));
  return memory.get();
}

}  // namespace piper::backend
