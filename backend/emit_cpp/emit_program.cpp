#include "backend/emit_cpp/emit_program.h"

#include <unordered_map>

#include "backend/device_program/stream_names.h"
#include "backend/dtypes.h"
#include "backend/kernel/emit_bodies.h"
#include "backend/kernel/names.h"
#include "ir/diagnostics/counted.h"

namespace piper::backend {

namespace {

std::string number(std::uint64_t value) {
  return value == PIPER_NO_OFFSET ? "PIPER_NO_OFFSET" : std::to_string(value);
}

std::string interval(std::uint32_t value) {
  return value == PIPER_ALL_POSITIONS ? "PIPER_ALL_POSITIONS" : std::to_string(value);
}

constexpr const char* kOps[] = {"PIPER_SEND",         "PIPER_RECV",           "PIPER_ALL_REDUCE",
                                "PIPER_ALL_GATHER_V", "PIPER_REDUCE_SCATTER", "PIPER_ALL_GATHER",
                                "PIPER_OFFLOAD",      "PIPER_FETCH"};
static_assert(std::size(kOps) == PIPER_COMM_OPS);
constexpr const char* kInits[] = {"PIPER_NORMAL", "PIPER_UNIFORM", "PIPER_ZEROS", "PIPER_ONES",
                                  "PIPER_CONSTANT"};

class Emission {
 public:
  Emission(const DeviceProgram& program, const std::vector<KernelBody>& bodies)
      : program_(program), bodies_(bodies), streams_(stream_names(program)) {}

  std::string run() {
    add_bodies();
    header();
    out_ += functions_.text();
    calls();
    counts();
    reports();
    tables();
    step();
    entry();
    return std::move(out_);
  }

 private:
  std::size_t num_compute() const { return program_.streams.front().action_of.size(); }
  const std::vector<std::uint32_t>& compute() const { return program_.streams.front().action_of; }

  std::string title(std::uint32_t index) const { return backend::title(program_, index); }

  /// Finds the bodies that the program runs, and those of equal code: the first one of them stands
  /// for all.
  void find_bodies() {
    std::unordered_map<std::string, std::uint32_t> by_code;
    body_of_.assign(bodies_.size(), kNone);
    for (const std::uint32_t index : compute()) {
      const Instruction& run = program_.instructions[index];
      if (run.kind != Instruction::Kind::run || body_of_[run.body] != kNone) continue;
      const auto [entry, fresh] = by_code.try_emplace(code_of(bodies_[run.body]), run.body);
      body_of_[run.body] = entry->second;
      if (fresh) {
        used_.push_back(run.body);
      } else {
        equal_[entry->second].push_back(bodies_[run.body].name);
      }
    }
  }

  void add_bodies() {
    equal_.resize(bodies_.size());
    function_of_.resize(bodies_.size());
    calls_of_.resize(bodies_.size());
    find_bodies();
    for (const std::uint32_t body : used_)
      function_of_[body] = functions_.add(bodies_[body], equal_[body]);
    call_.resize(program_.instructions.size(), 0);
    for (const std::uint32_t index : compute()) {
      const Instruction& each = program_.instructions[index];
      if (each.kind == Instruction::Kind::load) {
        call_[index] = static_cast<std::uint32_t>(loads_.size());
        loads_.push_back(index);
      }
      if (each.kind == Instruction::Kind::count) {
        call_[index] = static_cast<std::uint32_t>(counts_.size());
        counts_.push_back(index);
      }
      if (each.kind == Instruction::Kind::report) {
        call_[index] = static_cast<std::uint32_t>(reports_.size());
        reports_.push_back(index);
      }
      if (each.kind != Instruction::Kind::run) continue;
      std::vector<std::uint32_t>& calls = calls_of_[body_of_[each.body]];
      call_[index] = static_cast<std::uint32_t>(calls.size());
      calls.push_back(index);
    }
  }

  void header() {
    out_ += "// Program " + comment(program_.role) +
            ": one training step of the ranks of this role, " +
            counted(program_.instructions.size(), "action") + " on " +
            counted(program_.streams.size(), "stream") + ".\n";
    out_ += "// Numbers are bytes from the start of the arena (" + number(program_.arena_bytes) +
            " bytes, the first " + number(program_.state_bytes) + " of them state).\n";
    out_ +=
        "// What differs between ranks is in PiperRank: members of communicators, intervals of samples and buckets.\n";
    out_ += "#include \"runtime/abi.h\"\n#include \"runtime/kernel_math.h\"\n";
    out_ +=
        "\n// ---- bodies ----------------------------------------------------------------------------------------------------\n\n";
  }

  void calls() {
    out_ +=
        "\n// ---- where the operands of every call lie --------------------------------------------------------------------------\n";
    for (const std::uint32_t body : used_) {
      out_ +=
          "\nstatic const " + function_of_[body] + "_at " + function_of_[body] + "_calls[] = {\n";
      for (const std::uint32_t index : calls_of_[body]) {
        const Instruction& each = program_.instructions[index];
        const BodyOperands operands{
            .offsets = operands_of(program_, each),
            .accumulate = {program_.accumulate.data() + each.first_accumulate,
                           bodies_[body].num_outputs},
            .intervals = intervals_of(program_, each)};
        out_ += "    " + CppBodies::operands(bodies_[body], bodies_[each.body], operands) +
                ",  // " + program_.names[index].name + "\n";
      }
      out_ += "};\n";
    }
  }

  void counts() {
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      const Instruction& each = program_.instructions[counts_[c]];
      const std::span operands = operands_of(program_, each);
      out_ +=
          "\n// " + title(counts_[c]) + "\nstatic void count_" + std::to_string(c) +
          "(PiperRank* rank) {\n  static const uint64_t from[] = {" +
          offsets_text(operands.first(operands.size() - 1)) +
          "};\n  int64_t counted = 0;\n  for (uint32_t i = 0; i < " +
          std::to_string(operands.size() - 1) +
          "; ++i) {\n    const int64_t* targets = (const int64_t*)(rank->arena + from[i]);\n    for (int64_t t = 0; t < " +
          number(each.elements) + "; ++t) counted += targets[t] != " + std::to_string(each.ignore) +
          "LL;\n  }\n  *(double*)(rank->arena + " + number(operands.back()) +
          ") = (double)counted;\n}\n";
    }
  }

  void reports() {
    for (std::size_t r = 0; r < reports_.size(); ++r) {
      const Instruction& each = program_.instructions[reports_[r]];
      const std::uint32_t count = each.num_operands;
      if (count == 0) continue;
      const std::uint32_t sums = count - (each.counted ? 1u : 0u);
      out_ += "\n// " + title(reports_[r]) + "\n";
      out_ += "static void report_" + std::to_string(r) +
              "(const PiperApi* api, PiperRank* rank) {\n  static const uint64_t from[] = {" +
              offsets_text(operands_of(program_, each));
      const std::string size = std::to_string(count);
      out_ += "};\n  double values[" + size + "];\n  for (uint32_t i = 0; i < " +
              std::to_string(sums) + "; ++i) values[i] = (double)*(const " +
              row_of(each.dtype).cpp + "*)(rank->arena + from[i]);\n";
      if (each.counted)
        out_ += "  values[" + std::to_string(sums) + "] = *(const double*)(rank->arena + from[" +
                std::to_string(sums) + "]);  // how many elements count\n";
      out_ +=
          "  api->report(rank, " +
          (each.subject == PIPER_NORM ? std::string("PIPER_NORM") : std::to_string(each.subject)) +
          ", values, " + size + ");\n}\n";
    }
  }

  void tables() {
    out_ +=
        "\n// ---- tables --------------------------------------------------------------------------------------------------------\n";
    out_ += "\n" + stream_constants(streams_);
    out_ += "\nstatic const PiperActionInfo actions[] = {\n";
    for (const ActionName& name : program_.names) {
      out_ += "    {" + quoted(name.name) + ", {" + quoted(program_.files[name.file]) + ", " +
              std::to_string(name.line) + ", " + std::to_string(name.column) + ", " +
              std::to_string(name.end_line) + ", " + std::to_string(name.end_column) + "}},\n";
    }
    if (program_.names.empty()) out_ += "    {\"\", {\"\", 0, 0, 0, 0}},\n";
    out_ += "};\n";
    if (!program_.waits.empty()) {
      out_ += "\nstatic const PiperWait waits[] = {\n";
      for (const PiperWait& wait : program_.waits) {
        out_ += "    {" + streams_[wait.stream] + ", " + std::to_string(wait.position) + ", " +
                std::to_string(wait.distance) + "},  // " + comment(wait_text(program_, wait)) +
                "\n";
      }
      out_ += "};\n";
    }
    if (!program_.intervals.empty()) {
      out_ +=
          "\n// How many positions every rank has of its intervals.\nstatic const uint64_t extents[] = {";
      for (std::size_t s = 0; s < program_.intervals.size(); ++s)
        out_ += (s == 0 ? "" : ", ") + number(program_.intervals[s].extent);
      out_ += "};\n";
    }
    if (!program_.parts.empty()) {
      out_ += "\nstatic const PiperMessagePart parts[] = {\n";
      for (const PiperMessagePart& part : program_.parts) {
        out_ += "    {" + number(part.in) + ", " + number(part.out) + ", " + number(part.elements) +
                ", " + row_of(part.dtype).abi_name + ", " + interval(part.interval) + ", " +
                number(part.flags) + ", 0},\n";
      }
      out_ += "};\n";
    }
    for (std::size_t s = 0; s < program_.streams.size(); ++s) stream_tables(s);
    out_ += "\nstatic const PiperStream streams[] = {\n";
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      const ProgramStream& stream = program_.streams[s];
      out_ += "    {.name = " + quoted(stream.name) +
              ", .num_actions = " + std::to_string(stream.action_of.size()) +
              ", .high_priority = " + (stream.high_priority ? "1" : "0") +
              ", .comm = " + (stream.comm.empty() ? std::string("0") : "comm_of_" + streams_[s]) +
              ", .action_of = " +
              (stream.action_of.empty() ? std::string("0") : "actions_of_" + streams_[s]) + "},\n";
    }
    out_ += "};\n";
    params();
  }

  void stream_tables(std::size_t s) {
    const ProgramStream& stream = program_.streams[s];
    if (!stream.action_of.empty()) {
      out_ += "\nstatic const uint32_t actions_of_" + streams_[s] + "[] = {";
      for (std::size_t i = 0; i < stream.action_of.size(); ++i)
        out_ += (i % 20 == 0 ? "\n    " : " ") + std::to_string(stream.action_of[i]) + ",";
      out_ += "\n};\n";
    }
    if (stream.comm.empty()) return;
    out_ += "\n// The stream " + comment(stream.name) +
            ", in the order of its actions.\nstatic const PiperCommAction comm_of_" + streams_[s] +
            "[] = {\n";
    for (const PiperCommAction& comm : stream.comm) {
      out_ += std::string("    {.op = ") + kOps[comm.op] +
              ", .communicator = " + std::to_string(comm.communicator) +
              ", .identity = " + std::to_string(comm.identity) +
              ", .first_part = " + std::to_string(comm.first_part) +
              ", .num_parts = " + std::to_string(comm.num_parts) +
              ", .first_wait = " + std::to_string(comm.first_wait) +
              ", .num_waits = " + std::to_string(comm.num_waits) +
              ", .action = " + std::to_string(comm.action) + "},  // " + title(comm.action) + "\n";
    }
    out_ += "};\n";
  }

  void params() {
    if (program_.params.empty()) return;
    out_ += "\n";
    for (std::size_t p = 0; p < program_.params.size(); ++p) {
      const std::vector<std::int64_t>& dims = program_.params[p].dims;
      if (dims.empty()) continue;
      out_ += "static const int64_t dims_" + std::to_string(p) + "[] = {";
      for (std::size_t d = 0; d < dims.size(); ++d)
        out_ += (d == 0 ? "" : ", ") + std::to_string(dims[d]);
      out_ += "};\n";
    }
    out_ += "static const PiperParam params[] = {\n";
    for (std::size_t p = 0; p < program_.params.size(); ++p) {
      const PiperParam& entry = program_.params[p].entry;
      std::string slots;
      for (const std::uint64_t offset : entry.slot_offsets)
        slots += (slots.empty() ? "" : ", ") + number(offset);
      char scale[40];
      std::snprintf(scale, sizeof scale, "%.17g", entry.scale);
      out_ +=
          "    {.name = " + quoted(program_.params[p].name) +
          ", .offset = " + number(entry.offset) + ", .grad_offset = " + number(entry.grad_offset) +
          ", .slot_offsets = {" + slots + "}, " +
          (entry.slots_on_host != 0 ? ".slots_on_host = 1, " : "") +
          (entry.average_slot != 0 ? ".average_slot = " + number(entry.average_slot) + ", " : "") +
          ".elements = " + number(entry.elements) + ", .dtype = " + row_of(entry.dtype).abi_name +
          ", .sum_dtype = " + row_of(entry.sum_dtype).abi_name + ", .init = " + kInits[entry.init] +
          ", .scale = " + scale + ", .counted = " + std::to_string(entry.counted) +
          ", .num_dims = " + std::to_string(entry.num_dims) +
          ", .dims = " + (entry.num_dims == 0 ? std::string("0") : "dims_" + std::to_string(p)) +
          (entry.interval == PIPER_ALL_POSITIONS ? "" : ", .first = " + number(entry.first)) +
          ", .interval = " + interval(entry.interval) +
          (entry.sharded == 0 ? "" : ", .sharded = " + number(entry.sharded)) + "},\n";
    }
    out_ += "};\n";
  }

  void step() {
    out_ +=
        "\n// ---- the compute stream ----------------------------------------------------------------------------------------------\n";
    out_ += R"(
// Out of line, because a step has one of each per action.
[[maybe_unused]] static __attribute__((noinline)) int await(const PiperApi* api, PiperRank* rank, uint32_t stream, uint32_t position, uint32_t distance) {
  return piper_wait(api, rank, stream, position, distance);
}
[[maybe_unused]] static __attribute__((noinline)) void begin(PiperRank* rank, uint32_t position) { piper_begin(rank, )" +
            streams_[0] + R"(, position); }
[[maybe_unused]] static __attribute__((noinline)) void end(const PiperApi* api, PiperRank* rank, uint32_t position) { piper_end(api, rank, )" +
            streams_[0] + R"(, position); }

)";
    num_compute() <= kStraightLine ? straight_line() : loop();
  }

  void straight_line() {
    out_ += "static int step(const PiperApi* api, PiperRank* rank) {\n";
    if (num_compute() == 0) out_ += "  (void)api;\n  (void)rank;\n";
    for (const std::uint32_t index : compute()) {
      const Instruction& each = program_.instructions[index];
      const std::string action = std::to_string(index), position = std::to_string(each.position);
      out_ += "  // " + title(index) + "\n";
      for (const PiperWait& wait : waits_of(program_, each)) {
        out_ += "  if (await(api, rank, " + streams_[wait.stream] + ", " +
                std::to_string(wait.position) + ", " + std::to_string(wait.distance) +
                ")) return 1;  // " + comment(wait_text(program_, wait)) + "\n";
      }
      out_ += "  begin(rank, " + position + ");\n";
      switch (each.kind) {
        case Instruction::Kind::run:
          out_ += "  if (" + function_of_[body_of_[each.body]] + "(api, rank, " + action + ", &" +
                  function_of_[body_of_[each.body]] + "_calls[" + std::to_string(call_[index]) +
                  "])) return 1;\n";
          break;
        case Instruction::Kind::load: {
          const CallInterval& samples = intervals_of(program_, each).front();
          out_ += "  if (api->load(rank, " + action + ", " + std::to_string(each.subject) + ", " +
                  begin_of(samples) + ", " + number(program_.intervals[samples.interval].extent) +
                  ", rank->arena + " + number(operands_of(program_, each).front()) +
                  ")) return 1;\n";
          break;
        }
        case Instruction::Kind::count:
          out_ += "  count_" + std::to_string(call_[index]) + "(rank);\n";
          break;
        case Instruction::Kind::report:
          if (each.num_operands != 0)
            out_ += "  report_" + std::to_string(call_[index]) + "(api, rank);\n";
          break;
        case Instruction::Kind::communicate: break;
      }
      out_ += "  end(api, rank, " + position + ");\n\n";
    }
    out_ += "  return 0;\n}\n";
  }

  void loop() {
    if (!loads_.empty()) {
      out_ +=
          "struct Load {\n  uint32_t input, interval;\n  uint64_t first, samples, to;\n};\nstatic const Load loads[] = {\n";
      for (const std::uint32_t index : loads_) {
        const Instruction& each = program_.instructions[index];
        const CallInterval& samples = intervals_of(program_, each).front();
        out_ += "    {" + std::to_string(each.subject) + ", " + std::to_string(samples.interval) +
                ", " + number(samples.first) + ", " +
                number(program_.intervals[samples.interval].extent) + ", " +
                number(operands_of(program_, each).front()) + "},  // " +
                program_.names[index].name + "\n";
      }
      out_ += "};\n";
      out_ +=
          R"(static int load(const PiperApi* api, PiperRank* rank, uint32_t action, const Load* at) {
  return api->load(rank, action, at->input, at->first + rank->intervals[at->interval].first, at->samples, rank->arena + at->to);
}

)";
    }
    out_ +=
        "struct Action {\n  uint32_t action, what, call, first_wait, num_waits;\n};\nstatic const Action schedule[] = {\n";
    // `what`: a body by its position among those in use, then load, then one number per report and
    // per count.
    std::vector<std::uint32_t> what(bodies_.size(), 0);
    for (std::uint32_t i = 0; i < used_.size(); ++i) what[used_[i]] = i;
    const auto load = static_cast<std::uint32_t>(used_.size());
    for (const std::uint32_t index : compute()) {
      const Instruction& each = program_.instructions[index];
      const std::uint32_t kind =
          each.kind == Instruction::Kind::run    ? what[body_of_[each.body]]
          : each.kind == Instruction::Kind::load ? load
          : each.kind == Instruction::Kind::report
              ? load + 1 + call_[index]
              : load + 1 + static_cast<std::uint32_t>(reports_.size()) + call_[index];
      out_ += "    {" + std::to_string(index) + ", " + std::to_string(kind) + ", " +
              std::to_string(call_[index]) + ", " + std::to_string(each.first_wait) + ", " +
              std::to_string(each.num_waits) + "},  // " + title(index) + "\n";
    }
    out_ +=
        "};\n\nstatic int execute(const PiperApi* api, PiperRank* rank, const Action* each) {\n  switch (each->what) {\n";
    for (std::uint32_t i = 0; i < used_.size(); ++i) {
      const std::string& function = function_of_[used_[i]];
      out_ += "    case " + std::to_string(i) + ": return " + function +
              "(api, rank, each->action, &" + function + "_calls[each->call]);\n";
    }
    if (!loads_.empty())
      out_ += "    case " + std::to_string(load) +
              ": return load(api, rank, each->action, &loads[each->call]);\n";
    for (std::size_t r = 0; r < reports_.size(); ++r) {
      if (program_.instructions[reports_[r]].num_operands == 0) continue;
      out_ += "    case " + std::to_string(load + 1 + r) + ": report_" + std::to_string(r) +
              "(api, rank); return 0;\n";
    }
    for (std::size_t c = 0; c < counts_.size(); ++c) {
      out_ += "    case " + std::to_string(load + 1 + reports_.size() + c) + ": count_" +
              std::to_string(c) + "(rank); return 0;\n";
    }
    out_ +=
        "    default: return 0;\n  }\n}\n\nstatic int step(const PiperApi* api, PiperRank* rank) {\n";
    out_ += "  for (uint32_t position = 0; position < " + std::to_string(num_compute()) +
            "; ++position) {\n    const Action* each = &schedule[position];\n";
    if (!program_.waits.empty()) {
      out_ +=
          "    for (uint32_t w = each->first_wait; w < each->first_wait + each->num_waits; ++w) {\n";
      out_ +=
          "      if (await(api, rank, waits[w].stream, waits[w].position, waits[w].distance)) return 1;\n    }\n";
    }
    out_ +=
        "    begin(rank, position);\n    if (execute(api, rank, each)) return 1;\n    end(api, rank, position);\n  }\n  return 0;\n}\n";
  }

  void entry() {
    const auto table = [](bool there, const char* name) {
      return there ? std::string(name) : std::string("0");
    };
    out_ +=
        "\nextern \"C\" __attribute__((visibility(\"default\"))) const PiperProgram* piper_program_v1(void) {\n  static const PiperProgram program = {\n";
    const auto field = [&](const char* name, const std::string& value) {
      out_ += std::string("      .") + name + " = " + value + ",\n";
    };
    field("abi_version", "PIPER_ABI_VERSION");
    field("role", quoted(program_.role));
    field("hash", quoted(program_.hash));
    field("arena_bytes", number(program_.arena_bytes));
    field("state_bytes", number(program_.state_bytes));
    if (program_.host_bytes > 0) field("host_bytes", number(program_.host_bytes));
    if (program_.host_state_bytes > 0) field("host_state_bytes", number(program_.host_state_bytes));
    field("scalars_offset", number(program_.scalars_offset));
    field("num_actions", std::to_string(program_.instructions.size()));
    field("num_waits", std::to_string(program_.waits.size()));
    field("num_parts", std::to_string(program_.parts.size()));
    field("num_streams", std::to_string(program_.streams.size()));
    field("num_communicators", std::to_string(program_.communicators.size()));
    field("num_intervals", std::to_string(program_.intervals.size()));
    field("actions", "actions");
    field("waits", table(!program_.waits.empty(), "waits"));
    field("parts", table(!program_.parts.empty(), "parts"));
    field("streams", "streams");
    field("extents", table(!program_.intervals.empty(), "extents"));
    field("num_params", std::to_string(program_.params.size()));
    field("params", table(!program_.params.empty(), "params"));
    field("step", "step");
    field("context", "0");
    out_ += "  };\n  return &program;\n}\n";
  }

  const DeviceProgram& program_;
  const std::vector<KernelBody>& bodies_;
  const std::vector<std::string> streams_;  // their constants
  CppBodies functions_;
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  std::vector<std::uint32_t>
      body_of_;  // per body: the used one of equal code; kNone: it never runs
  // Per used body: the names of the others of equal code, its function, its instructions.
  std::vector<std::vector<std::string>> equal_;
  std::vector<std::string> function_of_;
  std::vector<std::vector<std::uint32_t>> calls_of_;
  std::vector<std::uint32_t> used_;  // bodies, by first use
  // Per instruction: position among the calls of its body, loads, reports or counts.
  std::vector<std::uint32_t> call_;
  std::vector<std::uint32_t> loads_, reports_, counts_;
  std::string out_;
};

}  // namespace

std::string emit_program(const DeviceProgram& program, const std::vector<KernelBody>& bodies) {
  return Emission(program, bodies).run();
}

}  // namespace piper::backend
