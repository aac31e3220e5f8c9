#include "runtime/cuda/role_scan.h"

#include <algorithm>
#include <string>

#include "runtime/alignment.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

namespace {

/// The recording device. Its arena is a range of addresses that is never accessed.
struct Scanner {
  static constexpr std::uint64_t kArena = std::uint64_t{1} << 46;

  RoleScan& scan;
  const PiperJob& job;
  const PiperProgram& program;
  std::vector<std::uint32_t> next;            // per queue
  std::vector<const PiperCallShape*> shapes;  // by number; null: not called so far
  const char* wrong = nullptr;

  static Scanner& of(PiperDevice* device) { return *static_cast<Scanner*>(device->device); }

  int begin(std::uint32_t stream, std::uint32_t action, const PiperWait* waits,
            std::uint32_t num_waits) {
    if (stream >= next.size() || action >= scan.actions.size())
      return refuse("an action lies on a stream that its program does not have");
    ScannedAction& made = scan.actions[action];
    made.stream = stream;
    made.position = next[stream]++;
    made.waits.assign(waits, waits + num_waits);
    if (made.position >= scan.awaited[stream].size())
      return refuse("a stream has more actions than its program says");
    for (const PiperWait& wait : made.waits) {
      if (wait.stream >= next.size() || wait.position >= scan.awaited[wait.stream].size() ||
          wait.distance > 1)
        return refuse("an action waits for one that does not exist");
      if (wait.distance == 0 && wait.position >= next[wait.stream])
        return refuse("an action waits for a later one of its step");
      scan.awaited[wait.stream][wait.position] = 1;
    }
    return 0;
  }
  int call(const PiperCall& call) {
    const PiperCallShape& shape = *call.shape;
    if (shape.kind >= PIPER_CALL_KINDS) return refuse("a library call has an unknown kind");
    if (shape.number >= shapes.size())
      return refuse("a library call has a number that its program does not have");
    const PiperCallShape*& known = shapes[shape.number];
    if (known != nullptr && !piper_same_shape(known, &shape))
      return refuse("library calls of two shapes have one number");
    known = &shape;
    switch (static_cast<PiperCallKind>(shape.kind)) {
      case PIPER_CALL_GEMM: return product(call);
      case PIPER_CALL_ATTEND:
      case PIPER_CALL_ATTEND_GRAD: return attention(call);
    }
    return 1;
  }
  int product(const PiperCall& call) {
    const std::uint32_t dtype = call.shape->of.gemm.dtype;
    if (!is_floating(dtype)) return refuse("a matrix product has an unknown dtype");
    if (call.end > PIPER_END_ROUNDS || (call.end == PIPER_END_ROUNDS && dtype != PIPER_BF16))
      return refuse("a matrix product has an unknown end");
    if (call.workspace_bytes < PIPER_WORKSPACE_ALIGNMENT)
      return refuse("a matrix product has no workspace");
    for (const ScannedCall& known : scan.products) {
      if (known.end == call.end && known.shape.number == call.shape->number) return 0;
    }
    scan.products.push_back({*call.shape, call.end, call.workspace_bytes});
    return 0;
  }
  int attention(const PiperCall& call) {
    const PiperAttend& of = call.shape->of.attend;
    if (!is_floating(of.dtype)) return refuse("an attention has an unknown dtype");
    if (of.form > PIPER_ATTEND_EFFICIENT) return refuse("an attention has an unknown form");
    scan.torch_attention |= of.form != PIPER_ATTEND_BUILTIN;
    scan.flash_attention |= of.form == PIPER_ATTEND_FLASH;
    return 0;
  }
  int load(std::uint32_t action, std::uint32_t input, std::uint64_t first, std::uint64_t samples) {
    const PiperInput* const loaded = piper_input(&job, input);
    if (loaded == nullptr) return refuse("a load names an input that does not exist");
    ScannedLoad& load = scan.loads.emplace_back(
        ScannedLoad{action, input, first, samples, samples * sample_bytes(*loaded)});
    std::uint64_t& total = load.carried() ? scan.carried_bytes : scan.load_bytes;
    load.offset = total;
    total += aligned(load.bytes);
    return 0;
  }
  int report(std::uint32_t action, std::uint32_t subject, std::uint32_t count, std::uint32_t dtype,
             bool counted) {
    scan.reports.push_back({action, subject, dtype, count, counted, scan.report_bytes});
    scan.report_bytes += 8 * std::uint64_t{count};
    return 0;
  }
  int refuse(const char* what) {
    wrong = what;
    return 1;
  }
};

PiperDevice scanning_device(Scanner& scanner) {
  PiperDevice device{};
  device.abi_version = PIPER_DEVICE_ABI_VERSION;
  device.device = &scanner;
  device.begin = [](PiperDevice* d, PiperRank*, std::uint32_t stream, std::uint32_t action,
                    const PiperWait* waits, std::uint32_t count) {
    return Scanner::of(d).begin(stream, action, waits, count);
  };
  device.end = [](PiperDevice*, PiperRank*, std::uint32_t, std::uint32_t) { return 0; };
  device.kernel = [](PiperDevice*, PiperRank*, std::uint32_t, std::uint32_t, std::uint32_t,
                     const void* const*) { return 0; };
  device.clear = [](PiperDevice*, PiperRank*, std::uint32_t, std::uint32_t, void*, std::uint64_t) {
    return 0;
  };
  device.check = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t action,
                    const PiperCheck* check, const std::int64_t*) {
    Scanner::of(d).scan.checks.push_back({action, check});
    return 0;
  };
  device.count = [](PiperDevice*, PiperRank*, std::uint32_t, std::uint32_t, const std::uint64_t*,
                    std::uint32_t, std::uint64_t, std::int64_t, std::uint64_t) { return 0; };
  device.call = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                   const PiperCall* call) { return Scanner::of(d).call(*call); };
  device.load = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t action,
                   std::uint32_t input, std::uint64_t first, std::uint64_t samples,
                   std::uint64_t) { return Scanner::of(d).load(action, input, first, samples); };
  device.report = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t action,
                     std::uint32_t subject, const std::uint64_t*, std::uint32_t count,
                     std::uint32_t dtype, std::uint32_t counted) {
    return Scanner::of(d).report(action, subject, count, dtype, counted != 0);
  };
  device.communicate = [](PiperDevice*, PiperRank*, std::uint32_t, std::uint32_t, std::uint32_t) {
    return 0;
  };
  return device;
}

}  // namespace

std::uint64_t sample_bytes(const PiperInput& input) {
  std::uint64_t bytes = element_bytes(input.dtype);
  for (std::uint32_t d = 0; d < input.num_dims; ++d)
    bytes *= d == input.sample_dim ? 1 : static_cast<std::uint64_t>(input.dims[d]);
  return bytes;
}

std::optional<Failure> scan_role(const PiperEnqueue& role, const PiperJob& job,
                                 const PiperJobRank& rank, bool evaluation, RoleScan& scan) {
  const PiperProgram& program = evaluation ? *rank.evaluation : *rank.program;
  const auto bad = [&](const std::string& what) {
    return Failure{
        .code = kBadJob,
        .message = what,
        .hint =
            "this is a fault of the compiler or of the caller of the runtime, not of the program",
        .rank = rank.rank};
  };
  if (role.abi_version != PIPER_DEVICE_ABI_VERSION)
    return bad("the enqueuing function was built for ABI version " +
               std::to_string(role.abi_version));
  if (role.num_actions != program.num_actions)
    return bad("the enqueuing function has other actions than its program");
  if (!std::is_sorted(role.places, role.places + role.num_actions))
    return bad("the actions do not stand in the order of all ranks");
  scan = {};
  scan.actions.resize(program.num_actions);
  for (std::uint32_t s = 0; s < program.num_streams; ++s)
    scan.awaited.emplace_back(program.streams[s].num_actions, std::uint8_t{0});
  Scanner scanner{.scan = scan,
                  .job = job,
                  .program = program,
                  .next = std::vector<std::uint32_t>(program.num_streams),
                  .shapes = std::vector<const PiperCallShape*>(role.num_shapes)};
  PiperDevice device = scanning_device(scanner);
  PiperRank scanned{};
  scanned.program = &program;
  scanned.arena = reinterpret_cast<unsigned char*>(Scanner::kArena);
  scanned.intervals = evaluation ? rank.evaluation_intervals : rank.intervals;
  scanned.communicators = evaluation ? rank.evaluation_communicators : rank.communicators;
  if (role.enqueue(&role, &device, &scanned, 0, role.num_actions) != 0)
    return bad(scanner.wrong != nullptr ? scanner.wrong : "the enqueuing function fails");
  for (std::uint32_t s = 0; s < program.num_streams; ++s) {
    if (scanner.next[s] != program.streams[s].num_actions)
      return bad("a stream has fewer actions than its program says");
  }
  scan.report_bytes = aligned(scan.report_bytes);
  return std::nullopt;
}

}  // namespace piper::runtime::cuda
