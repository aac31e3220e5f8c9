#include "frontend/tools/dry_run.h"

#include <algorithm>
#include <set>
#include <vector>

#include "backend/device_program/job.h"
#include "frontend/pictures/text_table.h"
#include "frontend/tools/driver.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"
#include "runtime/dtypes.h"

namespace piper::tools {

namespace {

/// The processes of a run, before any of them exists.
struct Layout {
  runtime::Launch launch;
  bool started_here = false;  // by `-n`, which chooses the port
  bool cuda = false;
};

struct RankRow {
  std::uint32_t rank = 0, process = 0;
  std::string device, at, role;
  std::uint64_t state = 0, arena = 0, host = 0, sent = 0;
  std::set<std::uint32_t> peers;
};

/// Bytes that a member sends in one operation: of a collective those of a ring.
double bytes_sent(const PiperProgram& program, const PiperCommAction& action,
                  std::uint32_t members) {
  double bytes = 0;
  for (std::uint32_t i = 0; i < action.num_parts; ++i) {
    const PiperMessagePart& part = program.parts[action.first_part + i];
    if ((part.flags & PIPER_ZERO_FILL) != 0) continue;
    const double all = static_cast<double>(part.elements * runtime::element_bytes(part.dtype));
    const double share = (members - 1.0) / members;
    switch (static_cast<PiperCommOp>(action.op)) {
      case PIPER_SEND: bytes += all; break;
      case PIPER_ALL_REDUCE: bytes += 2 * share * all; break;
      case PIPER_REDUCE_SCATTER:
      case PIPER_ALL_GATHER: bytes += share * all; break;
      case PIPER_ALL_GATHER_V:
        if (part.in != PIPER_NO_OFFSET) bytes += (members - 1.0) * all;
        break;
      case PIPER_RECV:
      case PIPER_OFFLOAD:
      case PIPER_FETCH: break;
    }
  }
  return bytes;
}

void add_traffic(const PiperJobRank& rank, RankRow& row) {
  const PiperProgram& program = *rank.program;
  double sent = 0;
  for (std::uint32_t s = 0; s < program.num_streams; ++s) {
    const PiperStream& stream = program.streams[s];
    for (std::uint32_t i = 0; stream.comm != nullptr && i < stream.num_actions; ++i) {
      const PiperCommunicator& communicator = rank.communicators[stream.comm[i].communicator];
      row.peers.insert(communicator.members, communicator.members + communicator.num_members);
      sent += bytes_sent(program, stream.comm[i], communicator.num_members);
    }
  }
  row.peers.erase(rank.rank);
  row.sent = static_cast<std::uint64_t>(sent + 0.5);
}

std::string coordinates_text(const Context& context, const Mesh& mesh, std::uint64_t rank) {
  const std::vector<std::uint32_t> at = coordinates_of(mesh, rank);
  std::string text;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
    text += (text.empty() ? "" : " ") + std::string(context.text(mesh.axes[axis].name)) + "=" +
            std::to_string(at[axis]);
  return text;
}

std::vector<RankRow> rows_of(const Context& context, const Mesh& mesh, const PiperJob& job,
                             const Layout& layout) {
  const std::uint32_t world = layout.launch.world;
  const std::vector<std::uint32_t> processes = runtime::processes_of_ranks(world, job.world);
  std::vector<RankRow> rows;
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    const PiperProgram& program = *job.ranks[r].program;
    RankRow& row = rows.emplace_back();
    row.rank = r;
    row.process = processes[r];
    row.device = layout.cuda ? (world == 1 ? "GPU 0" : "its GPU") : "cpu";
    row.at = coordinates_text(context, mesh, r);
    row.role = program.role;
    row.state = program.state_bytes + program.host_state_bytes;
    row.arena = program.arena_bytes;
    row.host = program.host_bytes;
    if (const PiperProgram* const held_out = job.ranks[r].evaluation) {
      row.arena = std::max(row.arena, held_out->arena_bytes);
      row.host = std::max(row.host, held_out->host_bytes);
    }
    add_traffic(job.ranks[r], row);
  }
  return rows;
}

/// `1, 4 to 6`.
std::string ranks_text(const std::set<std::uint32_t>& ranks) {
  std::string text;
  for (auto at = ranks.begin(); at != ranks.end();) {
    const std::uint32_t first = *at;
    std::uint32_t last = first;
    for (++at; at != ranks.end() && *at == last + 1; ++at) last = *at;
    text += (text.empty() ? "" : ", ") + std::to_string(first) +
            (last == first ? "" : (last == first + 1 ? ", " : " to ") + std::to_string(last));
  }
  return text.empty() ? "none" : text;
}

std::string address_text(const Layout& layout) {
  if (layout.launch.world == 1) return "one process has all ranks";
  if (layout.started_here)
    return counted(layout.launch.world, "process", "processes") +
           " on this machine, which meet at 127.0.0.1, at a port that is free then";
  return counted(layout.launch.world, "process", "processes") + " of " + layout.launch.by +
         ", which meet at " + layout.launch.host + ":" + std::to_string(layout.launch.port) +
         (layout.launch.agent_store ? " in torchrun's store" : "");
}

std::string rows_text(const std::vector<RankRow>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"rank", "process", "device", "at", "role", "state", "arena", "sent in a step", "peers"}};
  for (const RankRow& row : rows) {
    table.push_back({std::to_string(row.rank), std::to_string(row.process), row.device, row.at,
                     row.role, bytes_text(row.state),
                     bytes_text(row.arena) +
                         (row.host > 0 ? " and " + bytes_text(row.host) + " of the host" : ""),
                     bytes_text(row.sent), ranks_text(row.peers)});
  }
  return pictures::text_table(table, std::vector<bool>(table.front().size(), true));
}

void print_json(std::ostream& out, const std::string& train, const Layout& layout,
                const std::vector<RankRow>& rows) {
  llvm::json::Array ranks;
  for (const RankRow& row : rows) {
    llvm::json::Array peers;
    for (const std::uint32_t peer : row.peers) peers.push_back(peer);
    ranks.push_back(llvm::json::Object{{"rank", row.rank},
                                       {"process", row.process},
                                       {"device", row.device},
                                       {"at", row.at},
                                       {"role", row.role},
                                       {"state_bytes", row.state},
                                       {"arena_bytes", row.arena},
                                       {"host_bytes", row.host},
                                       {"sent_bytes", row.sent},
                                       {"peers", std::move(peers)}});
  }
  llvm::json::Object object{{"schema", 1},
                            {"train", train},
                            {"processes", layout.launch.world},
                            {"ranks", std::move(ranks)}};
  if (layout.launch.world > 1 && !layout.started_here)
    object["address"] = layout.launch.host + ":" + std::to_string(layout.launch.port);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
  out << text << "\n";
}

}  // namespace

int print_dry_run(Session& session, Session::Subject& subject,
                  const std::optional<runtime::Launch>& launch) {
  if (launch && launch->rank != 0) return session.finish();
  Layout layout;
  layout.cuda = subject.lowered.strategy.settings.device == directive::Platform::cuda;
  layout.started_here = !launch && session.arguments().processes.value_or(1) > 1;
  layout.launch = launch.value_or(runtime::Launch{
      .world = static_cast<std::uint32_t>(session.arguments().processes.value_or(1))});
  const auto prepared = session.prepare(subject);
  auto training = prepared ? session.compile(subject, *prepared, false) : std::nullopt;
  if (!training) return session.finish();
  std::optional<dag::Dag> evaluation;
  if (subject.lowered.strategy.settings.held_out &&
      !(evaluation = session.compile(subject, *prepared, true)))
    return session.finish();
  backend::JobOptions options;
  options.target = session.compilation().target(subject.lowered.strategy.settings);
  options.engine = backend::Engine::interpreter;
  const auto job =
      backend::make_job(*training, evaluation ? &*evaluation : nullptr, options, session.sink());
  if (!job) return session.finish();
  const std::vector<RankRow> rows =
      rows_of(session.context(), training->mesh, job->tables(), layout);
  if (session.arguments().format == "json") {
    print_json(session.console().out, subject.name, layout, rows);
  } else {
    session.console().out << "train " << subject.name << ": " << counted(rows.size(), "rank")
                          << ", " << address_text(layout) << "\n"
                          << rows_text(rows);
  }
  return session.finish();
}

}  // namespace piper::tools
