// Compiles generated sources in parallel processes and loads the objects.
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <thread>

#include "backend/jit/command.h"
#include "backend/jit/jit.h"
#include "backend/jit/object_cache.h"
#include "backend/jit/self_check.h"
#include "backend/kernel/emit_bodies.h"
#include "embedded/program_headers.h"

namespace piper::backend {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kNameInFile = 80;

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list(1);
  for (const char c : text) {
    if (c != ' ' && c != '\t') {
      list.back() += c;
    } else if (!list.back().empty()) {
      list.emplace_back();
    }
  }
  if (list.back().empty()) list.pop_back();
  return list;
}

/// The reason why a compiler did not finish, if the code is not at fault: a text, and whether
/// memory ran out or a file could not be written, as far as known.
struct Outside {
  std::string cause;
  bool memory = false;
  int file = 0;  // the error of a file that could not be written
};

/// A compiler driver survives the kill of one of its processes and reports it in a line of its own.
std::optional<Outside> outside_cause(const Command& child, const CommandEnd& end) {
  if (child.error != 0) {
    const bool file = child.error == ENOSPC || child.error == EDQUOT || child.error == EFBIG;
    return Outside{std::string("it could not be started: ") + std::strerror(child.error),
                   child.error == ENOMEM || child.error == EAGAIN, file ? child.error : 0};
  }
  if (end.endless)
    return Outside{"it had said " + std::to_string(kMaxWords >> 20) + " MiB and was ended"};
  if (end.signal != 0) {
    const char* name = sigabbrev_np(end.signal);
    return Outside{
        "it was ended by SIG" + std::string(name != nullptr ? name : std::to_string(end.signal)),
        end.signal == SIGKILL};
  }
  struct Sign {
    const char* text;
    bool memory = false;
    int file = 0;
  };
  static constexpr Sign kSigns[] = {{"Killed signal terminated program", true},
                                    {"signal terminated program"},
                                    {"unable to execute command: Killed", true},
                                    {"out of memory", true},
                                    {"virtual memory exhausted", true},
                                    {"annot allocate memory", true},
                                    {"No space left on device", false, ENOSPC},
                                    {"Disk quota exceeded", false, EDQUOT},
                                    {"File too large", false, EFBIG}};
  for (const Sign& sign : kSigns) {
    const std::size_t at = end.words.find(sign.text);
    if (at == std::string::npos) continue;
    const std::size_t begin = end.words.rfind('\n', at) + 1;
    return Outside{"it says `" + end.words.substr(begin, end.words.find('\n', at) - begin) + "`",
                   sign.memory, sign.file};
  }
  return std::nullopt;
}

/// Whether commands get a smaller stack than compilers need; g++ itself raises the limit as far as
/// allowed.
bool has_small_stack() {
  constexpr rlim_t kUsual = rlim_t{8} << 20;
  rlimit stack{};
  return getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_max < kUsual;
}

struct Compiler {
  std::vector<std::string> command;
  std::string version;  // its version text
};

std::optional<Compiler> find_compiler(const JitOptions& options, std::string& tried) {
  std::vector<std::string> candidates;
  if (!options.compiler.empty()) {
    candidates = {options.compiler};
  } else {
    candidates = {"g++", "c++"};
  }
  for (const std::string& candidate : candidates) {
    std::vector<std::string> command = words(candidate);
    if (command.empty()) continue;
    tried += (tried.empty() ? "`" : ", `") + candidate + "`";
    std::vector<std::string> question = command;
    question.push_back("--version");
    const Command child = start(question);
    CommandEnd end = finish(child, options.stop);
    if (end.good()) return Compiler{std::move(command), std::move(end.words)};
    if (child.error != 0) tried += std::string(": ") + std::strerror(child.error);
    if (end.endless)
      tried += ", which says " + std::to_string(kMaxWords >> 20) + " MiB about its version";
  }
  return std::nullopt;
}

/// The meaning of `-march=native` depends on the processor, and machines may share a cache.
std::string processor() {
  std::string text, kept;
  if (!read_file("/proc/cpuinfo", text)) return {};
  for (const char* key : {"model name", "flags"}) {
    const std::size_t at = text.find(key);
    if (at != std::string::npos) kept += text.substr(at, text.find('\n', at) - at) + "\n";
  }
  return kept;
}

/// A folder of this process, removed with its content unless the user needs a file in it.
struct TemporaryFolder {
  std::string path;
  bool keep = false;
  ~TemporaryFolder() {
    std::error_code error;
    if (!path.empty() && !keep) fs::remove_all(path, error);
  }
  void make_in(const std::string& folder) {
    std::string pattern = (folder.empty() ? "/tmp" : folder) + "/piper.XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
};

/// A file or folder of the cache that cannot be used, and why.
struct Unwritten {
  std::string path;
  std::error_code error;
  std::optional<Distrust> distrust = {};
  bool full() const { return error == std::errc::no_space_on_device || error.value() == EDQUOT; }
};

/// Writes the headers that sources include below a folder of the cache.
std::optional<Unwritten> write_headers(const ObjectCache& cache, const std::string& folder) {
  for (const embedded::File& file : embedded::program_headers()) {
    const std::string name = folder + "/" + std::string(file.path);
    if (const std::error_code error = cache.store_text(name, file.text))
      return Unwritten{cache.path(name), error};
  }
  return std::nullopt;
}

/// The system's message, in lower case like every message.
std::string words_of(const std::error_code& error) {
  std::string text = error.message();
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z')
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

class Build {
 public:
  Build(const JitOptions& options, DiagnosticSink& sink)
      : options_(options), sink_(sink), cache_(options.cache_folder) {}

  Built run(std::vector<ProgramSource> sources, std::vector<LoadedProgram>& loaded) {
    if (!find_compiler()) return stopped() ? Built::stopped : Built::no_compiler;
    // Functions that enqueue compute nothing.
    if (options_.self_check && !sources.empty() && sources.front().sort == ProgramSort::step) {
      check_.emplace();
      sources.push_back({"self_check", check_->source(), sources.front().train});
    }
    if (!cache_.error()) {
      const Built built = build(sources, loaded);
      if (!unwritten_) return built;
    } else {
      unwritten_ = {cache_.folder(), cache_.error(), cache_.distrust()};
    }
    const Refused refused = told(*unwritten_);
    temporary_.make_in(options_.temporary_folder);
    cache_ = ObjectCache(temporary_.path);
    unwritten_.reset();
    const Built built = cache_.error()
                            ? cannot_use({cache_.folder(), cache_.error(), cache_.distrust()})
                            : build(sources, loaded);
    if (unwritten_) {
      const std::string temporary =
          unwritten_->distrust
              ? "a temporary folder is not safe, either: `" + unwritten_->distrust->path + "` " +
                    unwritten_->distrust->reason
              : std::string("a temporary folder cannot be written either");
      sink_
          .report(refused.code, SourceRange(),
                  "{}, and {}; the interpreter runs the program, with the same results but slower",
                  refused.cause, temporary)
          .hint("{}", refused.hint);
    } else {
      sink_
          .report(refused.code, SourceRange(),
                  "{}; programs are built in a temporary folder, again in every run", refused.cause)
          .hint("{}", refused.hint);
    }
    return built;
  }

 private:
  /// The build was cancelled. A source without an object stays, because another process may be
  /// compiling it.
  bool stopped() const { return can_be_read(options_.stop); }

  /// The report of a cache that is not used, with its remedy.
  struct Refused {
    piper::Code code = piper::Code::cache_not_writable;
    std::string cause, hint;
  };
  Refused told(const Unwritten& unwritten) const {
    const std::string another = "set `PIPER_CACHE` to a folder that can be written";
    if (unwritten.distrust) {
      const std::string own = "set `PIPER_CACHE` to a folder of your own",
                        &path = unwritten.distrust->path;
      return {piper::Code::cache_not_trusted,
              "the cache folder `" + cache_.folder() + "` is not used: `" + path + "` " +
                  unwritten.distrust->reason,
              unwritten.distrust->mode ? "`chmod go-w " + path + "`, or " + own : own};
    }
    if (cache_.folder().empty()) return {.cause = "there is no cache folder", .hint = another};
    if (unwritten.full())
      return {.cause = "nothing more can be written to the cache folder `" + cache_.folder() + "`",
              .hint = "make room there, or set `PIPER_CACHE` to a folder with room"};
    const std::string cause = (unwritten.path == cache_.folder() ? "the cache folder `" : "`") +
                              unwritten.path + "` cannot be written: " + words_of(unwritten.error);
    if (unwritten.error == std::errc::file_too_large)
      return {.cause = cause,
              .hint = "raise the limit on the size of files, which `ulimit -f` tells"};
    if (unwritten.error == std::errc::is_a_directory)
      return {.cause = cause, .hint = "remove what is there, or " + another};
    return {.cause = cause, .hint = another};
  }

  static std::string headers_digest() {
    std::string text;
    for (const embedded::File& file : embedded::program_headers())
      text += std::string(file.path) + "\n" + std::string(file.text);
    return digest(text);
  }

  bool find_compiler() {
    std::string tried;
    std::optional<Compiler> compiler = piper::backend::find_compiler(options_, tried);
    if (!compiler && stopped()) return false;
    if (!compiler) {
      sink_
          .report(
              piper::Code::no_host_compiler, SourceRange(),
              "no C++ compiler was found to build the program with (tried {}); the interpreter runs it, with the same results but slower",
              tried)
          .hint("install g++, or name a compiler in `CXX`");
      return false;
    }
    compiler_ = std::move(*compiler);
    return true;
  }

  /// Builds and loads in the current folder.
  Built build(const std::vector<ProgramSource>& sources, std::vector<LoadedProgram>& loaded) {
    const std::string headers = std::string(kHeaderFolder) + headers_digest().substr(0, 16);
    if (const auto unwritten = write_headers(cache_, headers)) return cannot_use(*unwritten);
    include_ = cache_.path(headers);
    // It may have been made before the current permissions of its parent.
    for (const embedded::File& file : embedded::program_headers()) {
      const std::string folder = fs::path(include_ + "/" + std::string(file.path)).parent_path();
      if (auto distrust = distrust_of_folder(folder))
        return cannot_use(
            {folder, std::make_error_code(std::errc::permission_denied), std::move(distrust)});
    }
    std::string common;
    for (const std::string& word : compiler_.command) common += word + "\n";  // `CXX` may add flags
    common +=
        compiler_flags() + "\n" + compiler_.version + "\n" + processor() + headers_digest() + "\n";
    names_.clear();
    // File names are shorter than names may be; the digest keeps them distinct.
    for (const ProgramSource& source : sources)
      names_.push_back(source.name.substr(0, kNameInFile) + "-" +
                       digest(common + source.text).substr(0, 24));

    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::optional<Distrust> distrust;
      if (cache_.whole(names_[i] + ".so", distrust)) continue;
      missing.push_back(i);
      if (distrust) {
        sink_
            .report(piper::Code::cache_not_trusted, SourceRange(),
                    "`{}` of the cache is not used, and built again: it {}", distrust->path,
                    distrust->reason)
            .hint("somebody else could write to the cache: remove it, unless you know who");
      }
    }
    cached_.assign(sources.size(), true);
    for (const std::size_t i : missing) cached_[i] = false;
    if (const Built built = compile_once(sources, missing); built != Built::done) return built;

    std::vector<LoadedProgram> made;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::string reason;
      if (load(i, sources[i].sort, made, reason)) continue;
      if (cached_[i]) {
        cached_[i] = false;
        if (const Built built = compile(sources, {i}); built != Built::done) return built;
        if (load(i, sources[i].sort, made, reason)) continue;
      }
      sink_
          .report(piper::Code::program_does_not_load, sources[i].train,
                  "the program that was built as `{}` cannot be loaded: {}",
                  cache_.path(names_[i] + ".so"), reason)
          .hint(
              "`{}` may not be a C++ compiler for this machine; the source lies beside the object",
              compiler_.command.front());
      temporary_.keep = true;
      return Built::failed;
    }
    if (check_) {
      if (!computes_right(made.back())) return Built::no_compiler;
      made.pop_back();
    }
    for (LoadedProgram& each : made) loaded.push_back(std::move(each));
    return Built::done;
  }

  /// Whether the numbers of the self-check equal the evaluator's.
  bool computes_right(const LoadedProgram& check) {
    const std::string difference = check_->difference(*check.program());
    if (difference.empty()) return true;
    temporary_.keep = true;
    sink_
        .report(
            piper::Code::compiler_computes_wrong, SourceRange(),
            "`{}` compiles programs wrongly here: {}; the interpreter runs the program, with the right results but slower",
            compiler_.command.front(), difference)
        .hint("name another compiler in `CXX`; `{}` and the source beside it show the fault",
              check.path());
    return false;
  }

  /// Records why a cache is not used: the programs are built in another folder, or interpreted.
  Built cannot_use(Unwritten unwritten) {
    unwritten_ = std::move(unwritten);
    return Built::no_compiler;
  }

  /// Leaves out objects that another process is building, and waits for them.
  Built compile_once(const std::vector<ProgramSource>& sources, std::vector<std::size_t> missing) {
    std::vector<BuildClaim> claims(sources.size());
    const auto take = [&](std::size_t i) { return claims[i].take(cache_, names_[i]); };
    std::optional<Distrust> ignored;
    const auto built_by_now = [&](std::size_t i) {
      return cache_.whole(names_[i] + ".so", ignored);
    };
    const auto elsewhere = std::stable_partition(missing.begin(), missing.end(), take);
    std::vector<std::size_t> claimed(missing.begin(), elsewhere);
    std::erase_if(claimed, built_by_now);
    Built built = compile(sources, claimed);
    for (auto i = elsewhere; i != missing.end() && built == Built::done; ++i) {
      // A wait while others wait for this process would not end.
      claims = std::vector<BuildClaim>(sources.size());
      while (!take(*i) && !stopped()) usleep(10'000);
      if (!built_by_now(*i)) built = compile(sources, {*i});
    }
    return built;
  }

  Built compile(const std::vector<ProgramSource>& sources,
                const std::vector<std::size_t>& missing) {
    struct Running {
      std::size_t index;
      Command child;
      std::string aside;
    };
    std::deque<Running> running;
    std::optional<Unwritten> unwritten;
    bool good = true, usable = true;
    const auto reap = [&] {
      const Running done = running.front();
      running.pop_front();
      const std::string& name = names_[done.index];
      const CommandEnd end = finish(done.child, options_.stop);
      if (end.good()) {
        // It made no object, which loading reports.
        if (access(done.aside.c_str(), F_OK) != 0) return;
        if (const std::error_code error = cache_.store_object(done.aside, name + ".so")) {
          unwritten = {cache_.path(name + ".so"), error};
        } else {
          unlink(cache_.path(name + ".log").c_str());
        }
        return;
      }
      unlink(done.aside.c_str());
      if (stopped()) return;
      const auto outside = outside_cause(done.child, end);
      if (outside && outside->file != 0)
        unwritten = {cache_.path(name + ".so"), {outside->file, std::generic_category()}};
      if (const auto path = removed(name))
        unwritten = {*path, std::make_error_code(std::errc::no_such_file_or_directory)};
      if (good && !unwritten) {
        usable = outside || compiles_anything();
        if (stopped()) return;
        refuse(name, sources[done.index].train, end.words, outside, usable);
      }
      good = false;
    };
    const std::size_t most = options_.processes != 0
                                 ? options_.processes
                                 : std::max(1u, std::thread::hardware_concurrency());
    for (const std::size_t i : missing) {
      if (running.size() == most) reap();
      if (const std::error_code error = cache_.store_text(names_[i] + ".cpp", sources[i].text))
        unwritten = {cache_.path(names_[i] + ".cpp"), error};
      if (unwritten || stopped()) break;
      const std::string aside = cache_.path_aside(names_[i] + ".so");
      running.push_back({i, start_compiler(names_[i], aside), aside});
    }
    while (!running.empty()) reap();
    if (stopped()) return Built::stopped;
    if (sink_.has_errors()) return Built::failed;
    if (!usable) return Built::no_compiler;
    return unwritten ? cannot_use(std::move(*unwritten)) : Built::done;
  }

  /// The first input file that is missing because the cache was cleared; nothing if all exist.
  std::optional<std::string> removed(const std::string& name) const {
    std::vector<std::string> given = {cache_.path(name + ".cpp")};
    for (const embedded::File& file : embedded::program_headers())
      given.push_back(include_ + "/" + std::string(file.path));
    for (std::string& path : given) {
      if (access(path.c_str(), F_OK) != 0) return std::move(path);
    }
    return std::nullopt;
  }

  /// Compiles NAME.cpp of the cache into `object`.
  Command start_compiler(const std::string& name, const std::string& object) const {
    std::vector<std::string> command = compiler_.command;
    for (const std::string& flag : words(compiler_flags())) command.push_back(flag);
    for (const std::string& word :
         {std::string("-I"), include_, cache_.path(name + ".cpp"), std::string("-o"), object})
      command.push_back(word);
    return start(command);
  }

  /// Whether the compiler accepts an empty program: an incomplete one, or one that does not know a
  /// flag, refuses that too.
  bool compiles_anything() const {
    const std::string name = fs::path(cache_.path_aside("empty")).filename().string();
    if (cache_.store_text(name + ".cpp", "")) return true;
    const bool good = finish(start_compiler(name, cache_.path(name + ".so")), options_.stop).good();
    for (const char* ending : {".cpp", ".so"}) unlink(cache_.path(name + ending).c_str());
    return good;
  }

  void refuse(const std::string& name, LocId train, const std::string& compiler_words,
              const std::optional<Outside>& outside, bool usable) {
    temporary_.keep = true;
    const std::string source = cache_.path(name + ".cpp"), log = cache_.path(name + ".log");
    cache_.store_text(name + ".log", compiler_words);
    if (!usable) {
      sink_
          .report(
              piper::Code::no_host_compiler, SourceRange(),
              "`{}` compiles nothing here, not even an empty program; the interpreter runs the program, with the same results but slower",
              compiler_.command.front())
          .hint(
              "the compiler's words are in `{}`; install g++ whole, or name another compiler in `CXX`",
              log);
      return;
    }
    if (!outside) {
      sink_
          .report(
              piper::Code::generated_code_refused, train,
              "`{}` did not compile the generated program `{}`: this is a fault of piper, not of the program",
              compiler_.command.front(), source)
          .hint("the compiler's words are in `{}`; `--interpret` runs the program without it", log);
      return;
    }
    auto&& builder = sink_.report(piper::Code::compiler_did_not_finish, train,
                                  "`{}` did not finish the generated program `{}`: {}",
                                  compiler_.command.front(), source, outside->cause);
    if (outside->memory) {
      builder.hint(
          "the machine has probably run out of memory: free some and start again, or run with `--interpret`, with the same results but slower");
    } else if (has_small_stack()) {
      builder.hint(
          "`ulimit -s` leaves compilers too small a stack: raise it, or run with `--interpret`, with the same results but slower");
    } else {
      builder.hint(
          "start again; if it happens again, name another compiler in `CXX`, or run with `--interpret`, with the same results but slower");
    }
  }

  bool load(std::size_t i, ProgramSort sort, std::vector<LoadedProgram>& made,
            std::string& reason) {
    const std::string path = cache_.path(names_[i] + ".so");
    // Loading an object of `g++ -ffast-math` makes the thread flush subnormal numbers; this
    // restores the mode.
    std::fenv_t arithmetic;
    std::fegetenv(&arithmetic);
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::fesetenv(&arithmetic);
    if (handle == nullptr) {
      const char* error = dlerror();
      reason = error != nullptr ? error : "unknown";
      return false;
    }
    // Either table begins with its version.
    using Entry = const std::uint32_t* (*)();
    const char* const name = sort == ProgramSort::step ? "piper_program_v1" : "piper_enqueue_v1";
    const Entry entry = reinterpret_cast<Entry>(dlsym(handle, name));
    const std::uint32_t* table = entry != nullptr ? entry() : nullptr;
    if (table == nullptr ||
        *table != (sort == ProgramSort::step ? PIPER_ABI_VERSION : PIPER_DEVICE_ABI_VERSION)) {
      reason = table == nullptr ? "it has no `" + std::string(name) + "`"
                                : "it was built for ABI version " + std::to_string(*table);
      dlclose(handle);
      return false;
    }
    made.emplace_back(handle, table, path, cached_[i]);
    return true;
  }

  const JitOptions& options_;
  DiagnosticSink& sink_;
  TemporaryFolder temporary_;
  ObjectCache cache_;                   // the user's, or in the temporary folder
  std::optional<Unwritten> unwritten_;  // there
  std::optional<SelfCheck> check_;      // the last of the sources
  Compiler compiler_;
  std::string include_;
  std::vector<std::string> names_;  // per source: without suffix
  std::vector<bool> cached_;        // per source
};

}  // namespace

LoadedProgram::LoadedProgram(void* handle, const void* table, std::string path, bool cached)
    : handle_(handle), table_(table), path_(std::move(path)), cached_(cached) {}
LoadedProgram::LoadedProgram(LoadedProgram&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      table_(other.table_),
      path_(std::move(other.path_)),
      cached_(other.cached_) {}
LoadedProgram::~LoadedProgram() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::string machine_flags() {
#ifdef __x86_64__
  // No 512-bit vectors, because g++ 12 takes some permutations of eight doubles for ones within
  // lanes of two (`vpermilpd` for {0, 1, 2, 4, 4, 5, 6, 7}).
  return "-march=native -mprefer-vector-width=256";
#else
  return "-march=native";
#endif
}

std::string compiler_flags() {
  std::string flags = std::string(kKernelFlags) + " " + machine_flags() +
                      " -fPIC -shared -fno-exceptions -fno-rtti -g1";
#ifdef __SANITIZE_THREAD__
  // The counters that a program advances order its threads, so the sanitizer must see them.
  flags += " -fsanitize=thread";
#endif
#ifdef __SANITIZE_ADDRESS__
  // A program writes into memory that it did not allocate, so an index out of range must end the
  // run.
  flags += " -fsanitize=address,undefined -fno-sanitize-recover=undefined";
#endif
  return flags;
}

Built build_programs(const std::vector<ProgramSource>& sources, const JitOptions& options,
                     std::vector<LoadedProgram>& loaded, DiagnosticSink& sink) {
  return Build(options, sink).run(sources, loaded);
}

}  // namespace piper::backend
