#include "frontend/tools/stuck_view.h"

#include <algorithm>
#include <vector>

#include "frontend/pictures/text_table.h"
#include "frontend/tools/train_job.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/trace/flight.h"
#include "runtime/trace/positions.h"
#include "runtime/trace/stuck.h"

namespace piper::tools {

namespace {

namespace json = llvm::json;

/// The record of a rank; without a position if it is missing, or of another program.
struct Record {
  std::uint32_t rank = 0;
  bool here = false;
  PiperFlight flight{};
  std::optional<runtime::RankPosition> at = {};
};

struct Compiled {
  dag::Dag training;
  std::optional<dag::Dag> evaluation;
  std::unique_ptr<backend::Job> job;
};

/// The program with the hash that the records of a run have.
std::optional<Compiled> compile(Session& session, const Session::Subject& subject,
                                const runtime::Options& options) {
  const directive::Settings& settings = subject.lowered.strategy.settings;
  const std::optional<passes::Prepared> prepared = session.prepare(subject);
  auto training = prepared ? session.compile(subject, *prepared, false) : std::nullopt;
  if (!training) return std::nullopt;
  Compiled compiled{std::move(*training), std::nullopt, nullptr};
  if (settings.held_out) {
    compiled.evaluation = session.compile(subject, *prepared, true);
    if (!compiled.evaluation) return std::nullopt;
  }
  backend::JobOptions of_job;
  of_job.target = session.compilation().target(settings);
  of_job.engine = backend::Engine::interpreter;
  if (of_job.target == backend::Target::cpu) of_job.products = products_text(options);
  compiled.job =
      backend::make_job(compiled.training, compiled.evaluation ? &*compiled.evaluation : nullptr,
                        of_job, session.sink());
  return compiled.job ? std::optional(std::move(compiled)) : std::nullopt;
}

std::vector<Record> read_records(const PiperJob& job, const std::string& folder) {
  std::vector<Record> records;
  for (std::uint32_t r = 0; r < job.num_ranks; ++r) {
    Record& record = records.emplace_back(Record{.rank = job.ranks[r].rank});
    const auto flight = runtime::read_flight(runtime::flight_path(folder, record.rank));
    if (!flight) continue;
    record.here = true;
    record.flight = *flight;
    record.at = runtime::position_of(job.ranks[r], *flight);
  }
  return records;
}

bool has_position(const Record& record) { return record.at.has_value(); }

/// The chain of waits, among the ranks in the phase of the first one. Its location is the action
/// that no other holds up.
runtime::Failure chain_of(const PiperJob& job, const std::vector<Record>& records) {
  const runtime::Phase phase = std::ranges::find_if(records, has_position)->at->phase;
  std::vector<runtime::StuckRank> stuck;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!records[r].at || records[r].at->phase != phase) continue;
    const PiperRank tables = runtime::in_phase(job.ranks[r], phase);
    stuck.push_back({tables.program, tables.communicators, records[r].rank, records[r].flight});
  }
  return runtime::explain_stall(stuck);
}

std::string table_text(const PiperJob& job, const std::vector<Record>& records) {
  std::vector<std::vector<std::string>> rows = {{"rank", "step", "ended last", "running"}};
  for (std::size_t r = 0; r < records.size(); ++r) {
    const Record& record = records[r];
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::to_string(record.rank));
    if (!record.at) {
      row.insert(row.end(),
                 {"", record.here ? "a record of another program, or damaged" : "no record"});
      continue;
    }
    const runtime::PositionNames names = runtime::names_at(job.ranks[r], *record.at);
    const bool training = record.at->phase == runtime::Phase::training;
    row.insert(row.end(), {(training ? "" : "held-out ") + std::to_string(record.at->step + 1),
                           names.last, names.running});
  }
  return pictures::text_table(rows, {false, false, true, true});
}

std::string place_text(const runtime::ActionLocation& place) {
  if (place.line == 0) return "";
  return " (" + place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
         ")";
}

std::string stuck_text(const PiperJob& job, const std::vector<Record>& records) {
  const runtime::Failure chain = chain_of(job, records);
  std::string text = table_text(job, records) + "\nrank " + std::to_string(chain.rank) + ": `" +
                     chain.place.action + "`" + place_text(chain.place) +
                     " is the action for which the others wait\n";
  for (const runtime::Note& note : chain.notes)
    text += "  " + note.text + place_text(note.place) + "\n";
  return text;
}

std::string stuck_json(const PiperJob& job, const std::vector<Record>& records) {
  const runtime::Failure chain = chain_of(job, records);
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream);
  const auto write_place = [&](const runtime::ActionLocation& place) {
    out.attribute("action", place.action);
    if (place.line == 0) return;
    out.attribute("file", json::isUTF8(place.file) ? place.file : json::fixUTF8(place.file));
    out.attribute("line", std::int64_t{place.line});
  };
  out.object([&] {
    out.attributeArray("chain", [&] {
      for (const runtime::Note& note : chain.notes) {
        out.object([&] {
          write_place(note.place);
          out.attribute("text", note.text);
        });
      }
    });
    out.attributeObject("held_up_by", [&] {
      write_place(chain.place);
      out.attribute("rank", std::int64_t{chain.rank});
    });
    out.attributeArray("ranks", [&] {
      for (std::size_t r = 0; r < records.size(); ++r) {
        out.object([&] {
          if (const auto& at = records[r].at) {
            const runtime::PositionNames names = runtime::names_at(job.ranks[r], *at);
            out.attribute("ended_last", names.last);
            out.attribute("held_out", at->phase == runtime::Phase::evaluation);
            out.attribute("running", names.running);
            out.attribute("step", static_cast<std::int64_t>(at->step + 1));
          }
          out.attribute("rank", std::int64_t{records[r].rank});
        });
      }
    });
    out.attribute("schema", 1);
  });
  return text + "\n";
}

}  // namespace

int show_stuck(Session& session, const Session::Subject& subject) {
  const std::string& folder = session.arguments().from;
  const auto options = runtime_options(session);
  const auto compiled = options ? compile(session, subject, *options) : std::nullopt;
  if (!compiled) return session.finish();
  const PiperJob& job = compiled->job->tables();
  const std::vector<Record> records = read_records(job, folder);
  if (std::ranges::any_of(records, has_position)) {
    session.write(session.arguments().format == "json" ? stuck_json(job, records)
                                                       : stuck_text(job, records));
    return session.finish();
  }
  const bool here = std::ranges::any_of(records, [](const Record& record) { return record.here; });
  session.sink()
      .report(Code::no_flight_records, subject.lowered.strategy.settings.loc,
              "`{}` has no flight record of `{}`{}", folder, subject.name,
              here ? ": those that are there are of another program, or damaged" : "")
      .hint("{}", here ? "give the file, the train and `-D` of the run, its `PIPER_MATH`, and in "
                         "`PIPER_THREADS` its `--threads`"
                       : "`piper train --out DIR` keeps flight records in DIR");
  return session.finish();
}

}  // namespace piper::tools
