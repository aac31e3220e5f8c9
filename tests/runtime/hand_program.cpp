#include "tests/runtime/hand_program.h"

#include <algorithm>

namespace piper::runtime {

HandProgram::HandProgram(std::uint32_t rank) : rank_(rank), role_("rank" + std::to_string(rank)) {
  streams_.push_back(
      {.name = "compute", .high_priority = false, .actions = {}, .comm = {}, .action_of = {}});
  scalars_ = allocate<PiperScalars>(1);
}

std::uint32_t HandProgram::add_action(const std::string& name) {
  names_.push_back(name);
  const std::uint32_t index = static_cast<std::uint32_t>(infos_.size());
  infos_.push_back({nullptr, {"hand.pipe", index + 1, 5, index + 1, 9}});
  return index;
}

Spot HandProgram::compute(const std::string& name, std::vector<PiperWait> waits, Body body) {
  Stream& stream = streams_[0];
  stream.actions.push_back({std::move(waits), std::move(body), {}, {}, add_action(name)});
  return {0, static_cast<std::uint32_t>(stream.actions.size() - 1)};
}

Spot HandProgram::communicate(const std::string& stream, PiperCommOp op, std::uint32_t communicator,
                              std::uint32_t identity, std::vector<PiperMessagePart> parts,
                              std::vector<PiperWait> waits, const std::string& name) {
  std::size_t s = 1;
  while (s < streams_.size() && streams_[s].name != stream) ++s;
  if (s == streams_.size())
    streams_.push_back(
        {.name = stream, .high_priority = false, .actions = {}, .comm = {}, .action_of = {}});
  Action action{std::move(waits),
                {},
                {},
                std::move(parts),
                add_action(name.empty() ? stream + "." + std::to_string(identity) : name)};
  const auto found = std::find(communicators_.begin(), communicators_.end(), communicator);
  action.comm = {.op = static_cast<std::uint32_t>(op),
                 .communicator = static_cast<std::uint32_t>(found - communicators_.begin()),
                 .identity = identity,
                 .first_part = 0,
                 .num_parts = 0,
                 .first_wait = 0,
                 .num_waits = 0,
                 .action = action.action};
  if (found == communicators_.end()) communicators_.push_back(communicator);
  streams_[s].actions.push_back(std::move(action));
  return {static_cast<std::uint32_t>(s),
          static_cast<std::uint32_t>(streams_[s].actions.size() - 1)};
}

void HandProgram::add_wait(Spot spot, PiperWait wait) {
  streams_[spot.stream].actions[spot.position].waits.push_back(wait);
}

void HandProgram::set_high_priority(const std::string& name) {
  for (Stream& stream : streams_) stream.high_priority |= stream.name == name;
}

PiperParam& HandProgram::param(const std::string& name, std::uint64_t offset,
                               std::uint64_t gradient, std::uint64_t elements, std::uint32_t dtype,
                               PiperInitKind init, double scale) {
  param_names_.push_back(name);
  dims_.push_back(static_cast<std::int64_t>(elements));
  params_.push_back(
      {.name = param_names_.back().c_str(),
       .offset = offset,
       .grad_offset = gradient,
       .slot_offsets = {PIPER_NO_OFFSET, PIPER_NO_OFFSET, PIPER_NO_OFFSET, PIPER_NO_OFFSET},
       .slots_on_host = 0,
       .average_slot = 0,
       .elements = elements,
       .dtype = dtype,
       .sum_dtype = dtype,
       .init = static_cast<std::uint32_t>(init),
       .scale = scale,
       .counted = 1,
       .num_dims = 1,
       .dims = &dims_.back(),
       .first = 0,
       .interval = PIPER_ALL_POSITIONS,
       .sharded = PIPER_SHARDED_OPTIMIZER});
  return params_.back();
}

std::uint32_t HandProgram::interval(PiperInterval own) {
  intervals_.push_back(own);
  extents_.push_back(own.extent);
  return static_cast<std::uint32_t>(intervals_.size() - 1);
}

int HandProgram::run_step(const PiperApi* api, PiperRank* rank) {
  const HandProgram& self = *static_cast<const HandProgram*>(rank->program->context);
  std::uint32_t position = 0;
  for (const Action& action : self.streams_[0].actions) {
    for (const PiperWait& wait : action.waits) {
      if (piper_wait(api, rank, wait.stream, wait.position, wait.distance)) return 1;
    }
    piper_begin(rank, 0, position);
    Step step{api, rank, action.action};
    if (const int status = action.body(step)) return status;
    piper_end(api, rank, 0, position);
    ++position;
  }
  return 0;
}

const PiperProgram* HandProgram::finish() {
  for (std::size_t i = 0; i < infos_.size(); ++i) infos_[i].name = names_[i].c_str();
  for (Stream& stream : streams_) {
    for (Action& action : stream.actions) {
      stream.action_of.push_back(action.action);
      if (&stream == &streams_[0]) continue;
      action.comm.first_part = static_cast<std::uint32_t>(parts_.size());
      action.comm.num_parts = static_cast<std::uint32_t>(action.parts.size());
      action.comm.first_wait = static_cast<std::uint32_t>(waits_.size());
      action.comm.num_waits = static_cast<std::uint32_t>(action.waits.size());
      parts_.insert(parts_.end(), action.parts.begin(), action.parts.end());
      waits_.insert(waits_.end(), action.waits.begin(), action.waits.end());
      stream.comm.push_back(action.comm);
    }
  }
  for (const Stream& stream : streams_) {
    tables_.push_back({.name = stream.name.c_str(),
                       .num_actions = static_cast<std::uint32_t>(stream.actions.size()),
                       .high_priority = stream.high_priority,
                       .comm = &stream == &streams_[0] ? nullptr : stream.comm.data(),
                       .action_of = stream.action_of.data()});
  }
  program_ = {.abi_version = PIPER_ABI_VERSION,
              .role = role_.c_str(),
              .hash = "0123456789abcdef",
              .arena_bytes = bytes_,
              .state_bytes = state_bytes_,
              .host_bytes = host_bytes_,
              .host_state_bytes = 0,
              .scalars_offset = scalars_,
              .num_actions = static_cast<std::uint32_t>(infos_.size()),
              .num_waits = static_cast<std::uint32_t>(waits_.size()),
              .num_parts = static_cast<std::uint32_t>(parts_.size()),
              .num_streams = static_cast<std::uint32_t>(tables_.size()),
              .num_communicators = static_cast<std::uint32_t>(communicators_.size()),
              .num_intervals = static_cast<std::uint32_t>(extents_.size()),
              .actions = infos_.data(),
              .waits = waits_.data(),
              .parts = parts_.data(),
              .streams = tables_.data(),
              .extents = extents_.data(),
              .num_params = static_cast<std::uint32_t>(params_.size()),
              .params = params_.data(),
              .step = run_step,
              .context = this};
  return &program_;
}

HandJob::HandJob(std::uint32_t ranks) {
  for (std::uint32_t r = 0; r < ranks; ++r) training_.push_back(std::make_unique<HandProgram>(r));
  job_.abi_version = PIPER_ABI_VERSION;
  job_.train = "hand";
  job_.world = ranks;
  job_.num_ranks = ranks;
  job_.steps = 10;
  job_.samples_per_step = 8;
  job_.tokens_per_step = 8;
  job_.optimizer = {.name = "sgd",
                    .corrects_bias = 0,
                    .schedule = 0,
                    .base = 0.1,
                    .floor = 0,
                    .warmup = 0,
                    .total = 10,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .clips = 0,
                    .skips = 0,
                    .skip_above = 0,
                    .further_updates = 0};
}

HandProgram& HandJob::evaluation(std::uint32_t r) {
  while (evaluation_.size() < training_.size())
    evaluation_.push_back(
        std::make_unique<HandProgram>(static_cast<std::uint32_t>(evaluation_.size())));
  return *evaluation_[r];
}

void HandJob::input(const char* name, std::uint32_t dtype, std::vector<std::int64_t> dims) {
  dims_.push_back(std::move(dims));
  inputs_.push_back(
      {name, dtype, static_cast<std::uint32_t>(dims_.back().size()), dims_.back().data(), 0});
}

std::uint32_t HandJob::add(std::uint32_t kind, std::vector<std::uint32_t> members,
                           std::uint32_t sets) {
  communicators_.push_back({kind, sets, std::move(members)});
  return static_cast<std::uint32_t>(communicators_.size() - 1);
}

void HandJob::finish(HandProgram& program) {
  for (const std::uint32_t id : program.communicators_) {
    const Communicator& source = communicators_[id];
    const auto self = std::find(source.members.begin(), source.members.end(), program.rank_);
    program.local_communicators_.push_back(
        {.id = id,
         .kind = source.kind,
         .num_members = static_cast<std::uint32_t>(source.members.size()),
         .members = source.members.data(),
         .self = static_cast<std::uint32_t>(self - source.members.begin()),
         .num_sets = source.sets});
  }
  program.finish();
}

const PiperJob& HandJob::finish() {
  for (auto& program : training_) finish(*program);
  for (auto& program : evaluation_) finish(*program);
  for (std::uint32_t r = 0; r < training_.size(); ++r) {
    PiperJobRank rank{};
    rank.rank = r;
    rank.program = &training_[r]->program_;
    rank.communicators = training_[r]->local_communicators_.data();
    rank.intervals = training_[r]->intervals_.data();
    if (!evaluation_.empty()) {
      rank.evaluation = &evaluation_[r]->program_;
      rank.evaluation_communicators = evaluation_[r]->local_communicators_.data();
      rank.evaluation_intervals = evaluation_[r]->intervals_.data();
    }
    ranks_.push_back(rank);
  }
  job_.ranks = ranks_.data();
  job_.num_inputs = static_cast<std::uint32_t>(inputs_.size());
  job_.inputs = inputs_.data();
  job_.num_losses = static_cast<std::uint32_t>(losses_.size());
  job_.losses = losses_.data();
  return job_;
}

}  // namespace piper::runtime
