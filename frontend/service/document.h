#pragma once
// One version of a file with the files that it uses, and the results of the phases, each computed
// once on demand.
//
//   std::shared_ptr<Document> document = workspace.document("demo.pipe");
//   Answer<Plan> plan = document->plan({.name = "net"}, {}, &cancellation);
//   if (plan.value) show(plan.value->dag); else show(plan.status, plan.diagnostics);
//
// Guarantees: its texts do not change, whatever happens to the workspace. A value of an answer
// lives as long as the answer, within the life of the document; the document keeps the last few
// subjects and plans, and all other results. One thread asks at a time; a Cancellation may be
// requested from any. A request that was cancelled, or ran out of memory, changes nothing and can
// be repeated.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/service/compilation.h"
#include "frontend/service/open_files.h"
#include "frontend/service/symbols.h"

namespace piper::service {

enum class Status : std::uint8_t { done, cancelled, out_of_memory };

/// The answer of a request.
template <typename T>
struct Answer {
  Status status = Status::done;
  std::shared_ptr<const T> value;  // null: there is none, and the diagnostics say why
  // of this request, without those of requests that it uses; none if cancelled
  std::vector<Diagnostic> diagnostics;
};

struct SubjectRequest {
  // Empty: the only train, or the schedule of the library that the document is.
  std::string name;
  std::vector<lower::Override> values = {};  // of params, and of the parameters of a schedule
};

struct PlanRequest {
  SubjectRequest subject;
  dag::Level level = dag::Level::planned;
  bool forward_only = false;
};

/// The DAG of a subject at a level, and its model, which the passes have differentiated and
/// partitioned.
struct Plan {
  tensor::Graph model;
  dag::Dag dag;
};

/// The user's choices for all files.
struct Choices {
  // of params and of parameters of schedules that no train applies, in files that have them
  std::vector<lower::Override> values;
  // The one whose values are shown, in files that have it; empty: all.
  std::string train;
  friend bool operator==(const Choices&, const Choices&) = default;
};

class Document {
 public:
  /// `clean`: of other versions; none: everything is checked.
  Document(std::string path, std::uint64_t version, OpenFiles files, Choices choices = {},
           std::shared_ptr<CleanChecks> clean = nullptr);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  const std::string& path() const { return path_; }
  /// Documents of a workspace that were made later have larger ones.
  std::uint64_t version() const { return version_; }
  /// The files of all ranges; the document's own is the first that was read.
  const SourceTable& files() const { return compilation_.context().locations.files(); }

  /// All locations of its answers.
  const LocationTable& locations() const { return compilation_.context().locations; }

  /// The syntax tree, with comments; its diagnostics are those of the syntax alone. A `.pir` file
  /// has none.
  Answer<ast::Module> syntax(const Cancellation* cancellation = nullptr);
  /// Names and types; the diagnostics are those of syntax and analysis, of all files that it uses.
  /// A `.pir` file has none.
  Answer<sema::Program> program(const Cancellation* cancellation = nullptr);
  /// The DAG of a `.pir` file, verified.
  Answer<dag::Dag> dag(const Cancellation* cancellation = nullptr);
  /// Declarations, in text order; in a text with mistakes those that parsed.
  Answer<std::vector<Symbol>> symbols(const Cancellation* cancellation = nullptr);
  /// Uses of names with their declarations, in text order, as the analysis resolved them.
  Answer<std::vector<Use>> uses(const Cancellation* cancellation = nullptr);
  /// The trains and schedules of the file, in text order.
  Answer<std::vector<Symbol>> subjects(const Cancellation* cancellation = nullptr);
  /// A subject, lowered.
  Answer<Subject> subject(const SubjectRequest& request,
                          const Cancellation* cancellation = nullptr);
  Answer<Plan> plan(const PlanRequest& request, const Cancellation* cancellation = nullptr);
  /// All diagnostics of a check of the file: every phase of all trains, and of the schedules that
  /// none applies. The value has the sizes of these.
  Answer<std::vector<CheckedSchedule>> check(const Cancellation* cancellation = nullptr);

  /// The values that a check gives a schedule, or those of the workspace that a train takes; none
  /// for a name that is neither.
  std::vector<lower::Override> default_values(const std::string& name,
                                              const Cancellation* cancellation = nullptr);
  /// Another request about this version, under the same rules: the caller keeps the value, and a
  /// Cancelled or std::bad_alloc that `work` throws becomes the status. `work` may use the document
  /// too.
  struct Done {
    Status status = Status::done;
    std::vector<Diagnostic> diagnostics;
  };
  Done during(const Cancellation* cancellation,
              const std::function<void(Compilation&, DiagnosticSink&)>& work);
  /// The values of the expressions of the file in its trains, or the chosen one, and in the
  /// schedules that a check compiles. A `.pir` file has none.
  Answer<lower::Observations> observations(const Cancellation* cancellation = nullptr) {
    return observations(path_, cancellation);
  }
  /// The same for another file that it uses, with ranges of `files()`; no value if it uses none of
  /// that path.
  Answer<lower::Observations> observations(std::string_view path, const Cancellation* cancellation);

  /// Whether the answers may depend on that file.
  bool may_read(std::string_view path) const { return files_.may_read(path); }
  /// The files that have changed on the disk since it read them. Thread-safe.
  std::vector<std::string> changed_on_disk() const { return files_.changed_on_disk(); }

 private:
  /// A kept result of a request.
  template <typename T>
  struct Kept {
    std::shared_ptr<const T> value;  // null: none
    std::vector<Diagnostic> diagnostics;
  };
  /// The results of the last few requests of a kind, the newest first.
  template <typename T>
  class Recent {
   public:
    explicit Recent(std::size_t max_entries) : max_entries_(max_entries) {}
    /// The entry of that request; valid until the next one.
    std::unique_ptr<Kept<T>>& of(const std::string& request) {
      const auto found = std::find_if(entries_.begin(), entries_.end(),
                                      [&](const auto& each) { return each.first == request; });
      if (found != entries_.end()) {
        entries_.splice(entries_.begin(), entries_, found);
      } else {
        if (entries_.size() == max_entries_) entries_.pop_back();
        entries_.emplace_front(request, nullptr);
      }
      return entries_.front().second;
    }
    /// Frees results that can be computed again. False if there were none.
    bool forget() {
      return std::erase_if(entries_, [](const auto& each) { return each.second != nullptr; }) > 0;
    }

   private:
    const std::size_t max_entries_;
    std::list<std::pair<std::string, std::unique_ptr<Kept<T>>>> entries_;
  };
  /// A plan of 64 ranks and 256 microbatches takes about 50 MB, a subject a few.
  static constexpr std::size_t kSubjects = 16, kPlans = 4;
  /// Runs `work(sink)`, which gives a std::optional<T>, unless that was done before; without enough
  /// memory, again after dropping the results of other requests.
  template <typename T, typename Work>
  Answer<T> answer(std::unique_ptr<Kept<T>>& entry, const Cancellation* cancellation,
                   const Work& work);
  template <typename T, typename Work>
  Answer<T> compute(std::unique_ptr<Kept<T>>& entry, const Work& work);
  /// Frees all plans and subjects that no caller holds. False if there were none.
  bool forget();
  /// Analyses the program unless that was done; drops its diagnostics.
  bool analysed();

  const std::string path_;
  const std::uint64_t version_;
  OpenFiles files_;
  const Choices choices_;
  const std::shared_ptr<CleanChecks> clean_;
  Compilation compilation_;
  bool opened_ = false;
  bool usable_ = false;
  DiagnosticSink analysis_;
  std::unique_ptr<Kept<ast::Module>> syntax_;
  std::unique_ptr<Kept<const sema::Program*>> program_;
  std::unique_ptr<Kept<const dag::Dag*>> dag_;
  std::unique_ptr<Kept<std::vector<Symbol>>> symbols_, subjects_;
  std::unique_ptr<Kept<std::vector<Use>>> uses_;
  std::unique_ptr<Kept<std::vector<CheckedSchedule>>> check_;
  // By path.
  std::map<std::string, std::unique_ptr<Kept<lower::Observations>>, std::less<>> observations_;
  Recent<Subject> lowered_{kSubjects};
  Recent<Plan> plans_{kPlans};
};

}  // namespace piper::service
