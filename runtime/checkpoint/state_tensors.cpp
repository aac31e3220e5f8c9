#include "runtime/checkpoint/state_tensors.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/checkpoint/weight_index.h"
#include "runtime/device/state.h"
#include "runtime/dtypes.h"

namespace piper::runtime {
namespace {

const char* prefix_of(StatePart part) {
  switch (part) {
    case StatePart::values: return "";
    case StatePart::slot0: return "m/";
    case StatePart::slot1: return "v/";
    case StatePart::average: return kAverageKey.data();
  }
  return "";
}

/// Tensors of equal purpose, laid out over as many files as they need.
void add_files(std::vector<StateTensor> tensors, const char* stem, std::uint64_t max_file_bytes,
               StateLayout& layout) {
  if (tensors.empty()) return;
  const auto size = [](const StateTensor& tensor) {
    return tensor.stored.end - tensor.stored.begin;
  };
  std::vector<std::vector<StateTensor>> files(1);
  std::uint64_t bytes = 0;
  for (StateTensor& tensor : tensors) {
    if (bytes > 0 && bytes + size(tensor) > max_file_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += size(tensor);
    files.back().push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::vector<StoredTensor> stored;
    std::uint64_t at = 0;
    for (StateTensor& tensor : files[i]) {
      tensor.file = layout.files.size();
      tensor.stored.end = at + size(tensor);
      tensor.stored.begin = std::exchange(at, tensor.stored.end);
      stored.push_back(tensor.stored);
    }
    StateFile& file = layout.files.emplace_back();
    file.name = shard_name(stem, i, files.size());
    file.header = safetensors_header(stored, {{"format", "pt"}});
    file.bytes = file.header.size() + at;
    std::move(files[i].begin(), files[i].end(), std::back_inserter(layout.tensors));
  }
}

std::string index_of(const StateLayout& layout) {
  if (layout.files.size() <= 1) return {};
  WeightIndex index;
  for (const StateTensor& tensor : layout.tensors)
    index.add(tensor.stored, layout.files[tensor.file].name);
  return index.text();
}

/// The elements of a tensor that one copy of its parameter holds.
struct Holder {
  std::size_t rank;
  PartMemory memory;
  Elements here;
};

std::vector<Holder> holders_of(const RankParameters& parameters, const StateTensor& tensor) {
  std::vector<Holder> holders;
  for (std::size_t r = 0; r < parameters.ranks().size(); ++r) {
    for (const PiperParam* const param : parameters.copies(r, tensor.parameter)) {
      if (!param->counted) continue;
      const PartMemory memory = part_memory(*param, tensor.part);
      if (memory.offset == PIPER_NO_OFFSET) continue;
      const Elements here = elements_here(*param, memory.sharded, parameters.ranks()[r].intervals);
      if (here.first < here.end) holders.push_back({r, memory, here});
    }
  }
  return holders;
}

/// The holders share the elements [first, end) evenly.
void add_shares(std::span<const Holder* const> holders, std::uint64_t first, std::uint64_t end,
                std::vector<StateRange>& ranges) {
  const auto members = static_cast<std::uint32_t>(holders.size());
  for (std::uint32_t i = 0; i < members; ++i) {
    const PiperInterval share = piper_shard(end - first, members, i);
    if (share.extent == 0) continue;
    const Holder& holder = *holders[i];
    const std::uint64_t begin = first + share.first;
    ranges.push_back({holder.rank, holder.memory.on_host,
                      holder.memory.offset + (holder.here.at + begin - holder.here.first) *
                                                 element_bytes(holder.memory.dtype),
                      begin, begin + share.extent});
  }
}

}  // namespace

PartMemory part_memory(const PiperParam& param, StatePart part) {
  const std::uint64_t master = master_offset(param);
  if (part == StatePart::values) {
    if (master == PIPER_NO_OFFSET)
      return {param.offset, false, param.dtype, PIPER_SHARDED_PARAMETERS};
    return {master, param.slots_on_host != 0, param.sum_dtype, PIPER_SHARDED_OPTIMIZER};
  }
  const std::uint64_t average = average_offset(param);
  std::uint64_t offset = average;
  if (part != StatePart::average) {
    offset = param.slot_offsets[part == StatePart::slot0 ? 0 : 1];
    if (offset == master || offset == average) offset = PIPER_NO_OFFSET;
  }
  return {offset, param.slots_on_host != 0, param.sum_dtype, PIPER_SHARDED_OPTIMIZER};
}

RankParameters::RankParameters(std::span<const PiperJobRank> ranks) : ranks_(ranks) {
  for (const PiperJobRank& rank : ranks) {
    const auto [entry, is_new] = by_program_.try_emplace(rank.program);
    if (!is_new) continue;
    for (std::uint32_t p = 0; p < rank.program->num_params; ++p) {
      const PiperParam& param = rank.program->params[p];
      entry->second[param.name].push_back(&param);
      if (param.counted) counted_.emplace(param.name, &param);
    }
  }
}

std::span<const PiperParam* const> RankParameters::copies(std::size_t rank,
                                                          std::string_view name) const {
  const Copies& copies = by_program_.at(ranks_[rank].program);
  const auto found = copies.find(name);
  return found == copies.end() ? std::span<const PiperParam* const>() : found->second;
}

StateLayout state_layout(const RankParameters& parameters, std::uint64_t max_file_bytes) {
  std::vector<StateTensor> weights, optimizer;
  for (const auto& [name, param] : parameters.counted()) {
    for (const StatePart part : kStateParts) {
      const PartMemory memory = part_memory(*param, part);
      if (memory.offset == PIPER_NO_OFFSET) continue;
      StateTensor tensor;
      tensor.parameter = std::string(name);
      tensor.part = part;
      tensor.stored.name = prefix_of(part) + tensor.parameter;
      tensor.stored.type = stored_type_of(memory.dtype);
      tensor.stored.dims.assign(param->dims, param->dims + param->num_dims);
      tensor.stored.end = param->elements * element_bytes(memory.dtype);
      (part == StatePart::values ? weights : optimizer).push_back(std::move(tensor));
    }
  }
  // Larger elements first, so that every tensor begins at a multiple of its element.
  for (std::vector<StateTensor>* const list : {&weights, &optimizer}) {
    std::sort(list->begin(), list->end(), [](const StateTensor& a, const StateTensor& b) {
      const std::uint64_t size_a = stored_type_bytes(a.stored.type),
                          size_b = stored_type_bytes(b.stored.type);
      return size_a != size_b ? size_a > size_b : a.stored.name < b.stored.name;
    });
  }
  StateLayout layout;
  add_files(std::move(weights), "model", max_file_bytes, layout);
  layout.index = index_of(layout);
  add_files(std::move(optimizer), "optimizer", max_file_bytes, layout);
  return layout;
}

std::vector<StateRange> written_ranges(const RankParameters& parameters,
                                       const StateTensor& tensor) {
  std::vector<Holder> holders = holders_of(parameters, tensor);
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.here.first < b.here.first; });
  std::vector<StateRange> ranges;
  std::vector<const Holder*> active;  // those that hold the element `first`
  std::size_t next = 0;
  for (std::uint64_t first = 0; first < tensor.elements();) {
    std::erase_if(active, [&](const Holder* holder) { return holder->here.end <= first; });
    while (next < holders.size() && holders[next].here.first <= first)
      active.push_back(&holders[next++]);
    // All of them hold the elements up to `end`.
    std::uint64_t end = next < holders.size() ? holders[next].here.first : tensor.elements();
    for (const Holder* const holder : active) end = std::min(end, holder->here.end);
    add_shares(active, first, end, ranges);
    first = end;
  }
  return ranges;
}

}  // namespace piper::runtime
