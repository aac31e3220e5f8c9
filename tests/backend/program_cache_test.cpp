// The cache of built programs: cold, warm, damaged, not writable; compilers that are missing or
// wrong.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/jit/jit.h"
#include "backend/jit/object_cache.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;
using backend::Built;
using backend::JitOptions;
using backend::LoadedProgram;
using backend::ProgramSource;

/// A program without actions, distinguished by its hash.
std::string source(const std::string& hash, const std::string& version = "PIPER_ABI_VERSION") {
  return "#include \"runtime/abi.h\"\n#include \"runtime/kernel_math.h\"\n"
         "extern \"C\" const PiperProgram* piper_program_v1(void) {\n  static const PiperProgram program = {.abi_version = " +
         version + ", .hash = \"" + hash + "\"};\n  return &program;\n}\n";
}

class ProgramCache : public testing::Test {
 protected:
  Built build(const std::vector<ProgramSource>& sources) {
    loaded.clear();
    sink.emplace(locations);
    return backend::build_programs(sources, options, loaded, *sink);
  }
  std::vector<Code> codes() const {
    std::vector<Code> list;
    for (const Diagnostic& each : sink->sorted()) list.push_back(each.code);
    return list;
  }
  /// A program of that name that the shell runs; it answers `--version`.
  std::string compiler(const std::string& name, const std::string& script) {
    const std::string path = folder.write(
        name, "#!/bin/sh\nif [ \"$1\" = --version ]; then echo fake; exit 0; fi\n" + script + "\n");
    chmod(path.c_str(), 0755);
    return path;
  }

  LocationTable locations;
  TemporaryFolder folder;
  JitOptions options{
      .compiler = {}, .cache_folder = (folder.path() / "cache").string(), .processes = 2};
  std::vector<LoadedProgram> loaded;
  std::optional<DiagnosticSink> sink;
};

TEST_F(ProgramCache, ColdThenWarm) {
  ASSERT_EQ(build({{"a", source("one")}, {"b", source("two")}, {"c", source("three")}}),
            Built::done);
  ASSERT_EQ(loaded.size(), 3u);
  EXPECT_STREQ(loaded[0].program()->hash, "one");
  EXPECT_STREQ(loaded[2].program()->hash, "three");
  EXPECT_FALSE(loaded[1].from_cache());
  const std::string object = loaded[0].path();
  EXPECT_EQ(read_text(fs::path(object).replace_extension(".cpp")), source("one"));
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_TRUE(loaded[0].from_cache());
  EXPECT_EQ(loaded[0].path(), object);
  ASSERT_EQ(build({{"a", source("four")}}), Built::done);
  EXPECT_FALSE(loaded[0].from_cache());
  EXPECT_TRUE(sink->empty());
  // Nothing in the making is left behind.
  for (const auto& entry : fs::recursive_directory_iterator(options.cache_folder))
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
}

TEST_F(ProgramCache, ADamagedObjectIsBuiltAgain) {
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  const std::string object = loaded[0].path();
  loaded.clear();
  std::string whole;
  ASSERT_TRUE(backend::read_file(object, whole));
  const auto damage = [&](const std::string& what, const std::string& text) {
    fs::remove(object);
    write_text(object, text);
    ASSERT_EQ(build({{"a", source("one")}}), Built::done) << what;
    EXPECT_FALSE(loaded[0].from_cache()) << what;
    EXPECT_STREQ(loaded[0].program()->hash, "one") << what;
    EXPECT_TRUE(sink->empty()) << what;
    loaded.clear();
  };
  damage("empty", "");
  damage("cut short", whole.substr(0, whole.size() / 2));
  std::string altered = whole;
  altered[whole.size() / 2] ^= 1;
  damage("one bit", altered);
  damage("no object", "hello");
}

// The cache waits for nothing that lies in the place of a file.
TEST_F(ProgramCache, APipeWhereAnObjectBelongs) {
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  const std::string object = loaded[0].path();
  loaded.clear();
  for (const char* ending : {".so", ".cpp"}) {
    const std::string path = fs::path(object).replace_extension(ending);
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  }
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_STREQ(loaded[0].program()->hash, "one");
  EXPECT_TRUE(sink->empty());
}

// Complete, but another program: a cache that was copied or edited by hand.
TEST_F(ProgramCache, AnObjectUnderAnotherNameIsBuiltAgain) {
  ASSERT_EQ(build({{"a", source("one")}, {"b", source("two")}}), Built::done);
  const std::string first = loaded[0].path(), second = loaded[1].path();
  loaded.clear();
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  ASSERT_EQ(build({{"a", source("one")}, {"b", source("two")}}), Built::done);
  EXPECT_STREQ(loaded[0].program()->hash, "one");
  EXPECT_TRUE(loaded[0].from_cache());
  EXPECT_STREQ(loaded[1].program()->hash, "two");
  EXPECT_FALSE(loaded[1].from_cache());
  EXPECT_TRUE(sink->empty());
}

// A process that was killed removes nothing; the next one does, unless a third one may be writing.
TEST_F(ProgramCache, UnfinishedEntriesAreRemoved) {
  const std::vector<std::string> left = {"cache/a-12.so.4711.0.part", "cache/empty.4711.3.part.cpp",
                                         "cache/include-0123/runtime/abi.h.4711.1.part"};
  const std::vector<std::string> kept = {"cache/a-12.so", "cache/notes.part", "cache/v1.2.partial",
                                         "cache/wheels/torch.1.2.part"};
  for (const auto* names : {&left, &kept}) {
    for (const std::string& name : *names) folder.write(name, "x");
  }
  const auto there = [&](const std::vector<std::string>& names) {
    return std::count_if(names.begin(), names.end(),
                         [&](const std::string& name) { return fs::exists(folder.path() / name); });
  };
  {
    const backend::ObjectCache writer((folder.path() / "other").string());
    EXPECT_EQ(there(left), 3) << "another folder";
  }
  fs::create_directories(folder.path() / "cache");
  {
    const int lock =
        open((folder.path() / "cache/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(flock(lock, LOCK_SH), 0);
    ASSERT_EQ(build({{"a", source("one")}}), Built::done);
    EXPECT_EQ(there(left), 3) << "somebody is writing";
    close(lock);
  }
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_EQ(there(left), 0);
  EXPECT_EQ(there(kept), 4);
}

TEST_F(ProgramCache, TwoBuildersAtOneTime) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      DiagnosticSink own(locations);
      std::vector<LoadedProgram> mine;
      good += backend::build_programs({{"a", source("one")}}, options, mine, own) == Built::done &&
              own.empty();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 2);
}

TEST_F(ProgramCache, AFolderThatCannotBeWritten) {
  folder.write("file", "not a folder");
  options.cache_folder = (folder.path() / "file" / "cache").string();
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_STREQ(loaded[0].program()->hash, "one");
  EXPECT_EQ(codes(), std::vector{Code::cache_not_writable});
  EXPECT_EQ(
      sink->sorted()[0].message,
      "the cache folder `" + options.cache_folder +
          "` cannot be written: not a directory; programs are built in a temporary folder, again in every run");
  // The temporary folder is gone, the program stays.
  EXPECT_FALSE(fs::exists(loaded[0].path()));
}

TEST_F(ProgramCache, NoCompiler) {
  options.compiler = (folder.path() / "no-such-compiler").string();
  EXPECT_EQ(build({{"a", source("one")}}), Built::no_compiler);
  EXPECT_EQ(codes(), std::vector{Code::no_host_compiler});
  EXPECT_NE(sink->sorted()[0].message.find("no-such-compiler`: No such file or directory"),
            std::string::npos);
  EXPECT_FALSE(sink->has_errors());
}

TEST_F(ProgramCache, ACompilerThatRefuses) {
  ASSERT_EQ(build({{"a", "this is not C++\n"}}), Built::failed);
  ASSERT_EQ(codes(), std::vector{Code::generated_code_refused});
  // Source and log are where the message says.
  const Diagnostic said = sink->sorted()[0];
  const std::size_t begin = said.message.find(options.cache_folder),
                    end = said.message.find('`', begin);
  EXPECT_EQ(read_text(said.message.substr(begin, end - begin)), "this is not C++\n");
  const std::size_t log = said.hint.find(options.cache_folder);
  EXPECT_NE(
      read_text(said.hint.substr(log, said.hint.find('`', log) - log)).value_or("").find("error"),
      std::string::npos);
}

// A driver whose parts are not installed, or that does not know a flag, answers `--version` and
// refuses everything: that says nothing about the code.
TEST_F(ProgramCache, ACompilerThatCompilesNothing) {
  options.compiler =
      compiler("hollow", "echo \"g++: fatal error: cannot execute 'cc1plus'\"; exit 1");
  EXPECT_EQ(build({{"a", source("one")}, {"b", source("two")}}), Built::no_compiler);
  ASSERT_EQ(codes(), std::vector{Code::no_host_compiler});
  const Diagnostic said = sink->sorted()[0];
  EXPECT_NE(said.message.find("not even an empty program"), std::string::npos) << said.message;
  const std::size_t log = said.hint.find(options.cache_folder);
  ASSERT_NE(log, std::string::npos) << said.hint;
  EXPECT_NE(
      read_text(said.hint.substr(log, said.hint.find('`', log) - log)).value_or("").find("cc1plus"),
      std::string::npos);
  options.compiler = "g++ --no-such-flag";
  EXPECT_EQ(build({{"a", source("one")}}), Built::no_compiler);
  EXPECT_EQ(codes(), std::vector{Code::no_host_compiler});
}

// Neither memory nor the log holds more of its output than a person could read.
TEST_F(ProgramCache, ACompilerThatSaysTooMuch) {
  options.compiler = compiler("endless", "exec yes 'error: no end'");
  EXPECT_EQ(build({{"a", source("one")}}), Built::failed);
  ASSERT_EQ(codes(), std::vector{Code::compiler_did_not_finish});
  EXPECT_NE(sink->sorted()[0].message.find("it had said 64 MiB and was ended"), std::string::npos)
      << sink->sorted()[0].message;
  options.compiler = compiler(
      "long", "echo the beginning; yes 'error: much' | head -n 50000; echo the end; exit 1");
  EXPECT_EQ(build({{"a", "this is not C++\n"}}), Built::no_compiler);
  const std::string hint = sink->sorted()[0].hint;
  const std::size_t log = hint.find(options.cache_folder);
  ASSERT_NE(log, std::string::npos) << hint;
  const std::string words = read_text(hint.substr(log, hint.find('`', log) - log)).value_or("");
  EXPECT_LT(words.size(), std::size_t{200'000});
  EXPECT_TRUE(words.starts_with("the beginning\nerror: much\n"));
  EXPECT_TRUE(words.ends_with("\nerror: much\nthe end\n"));
  EXPECT_NE(words.find("bytes are left out here]"), std::string::npos);
}

// A driver that lives on when a part of it is killed says so and exits with 1; so does one whose
// own process is killed, by the shell that ran it or not.
TEST_F(ProgramCache, ACompilerThatIsEnded) {
  const auto failed_with = [&](const std::string& name, const std::string& script) {
    options.compiler = compiler(name, script);
    EXPECT_EQ(build({{"a", source("one")}, {"b", source("two")}}), Built::failed) << name;
    EXPECT_EQ(codes(), std::vector{Code::compiler_did_not_finish}) << name;
    for (const auto& entry : fs::recursive_directory_iterator(options.cache_folder))
      EXPECT_NE(entry.path().extension(), ".part") << name << entry.path();
    return sink->sorted()[0];
  };
  Diagnostic said = failed_with("killed", "kill -KILL $$");
  EXPECT_NE(said.message.find("it was ended by SIGKILL"), std::string::npos) << said.message;
  EXPECT_NE(said.hint.find("out of memory"), std::string::npos) << said.hint;
  said = failed_with(
      "part-killed",
      "echo 'g++: fatal error: Killed signal terminated program cc1plus'; echo 'compilation terminated.'; exit 1");
  EXPECT_NE(
      said.message.find("it says `g++: fatal error: Killed signal terminated program cc1plus`"),
      std::string::npos)
      << said.message;
  EXPECT_NE(said.hint.find("out of memory"), std::string::npos) << said.hint;
  said = failed_with("crashed", "kill -SEGV $$");
  EXPECT_NE(said.message.find("it was ended by SIGSEGV"), std::string::npos) << said.message;
  EXPECT_EQ(said.hint.find("memory"), std::string::npos) << said.hint;
}

// A full cache is no reason for a slow run while there is room elsewhere: an object built there is
// not kept.
TEST_F(ProgramCache, ACacheThatFills) {
  const std::string full = (folder.path() / "full").string();
  options.compiler = compiler(
      "filling",
      "for last; do :; done\ncase $last in \"" + options.cache_folder + "\"/*) if [ -e \"" + full +
          "\" ]; then echo '/usr/bin/ld: final link failed: No space left on device'; exit 1; fi;; esac\nexec g++ \"$@\"");
  const auto built_elsewhere = [&](const std::vector<ProgramSource>& sources) {
    ASSERT_EQ(build(sources), Built::done);
    ASSERT_EQ(codes(), std::vector{Code::cache_not_writable});
    EXPECT_EQ(sink->sorted()[0].message,
              "nothing more can be written to the cache folder `" + options.cache_folder +
                  "`; programs are built in a temporary folder, again in every run");
    ASSERT_EQ(loaded.size(), sources.size());
    for (const LoadedProgram& each : loaded) EXPECT_FALSE(fs::exists(each.path())) << each.path();
  };
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  const std::string object = loaded[0].path();
  folder.write("full", "");
  built_elsewhere({{"a", source("two")}, {"b", source("three")}});
  EXPECT_STREQ(loaded[1].program()->hash, "three");
  // Existing objects of the cache are used all the same, unless they do not load.
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_TRUE(sink->empty());
  EXPECT_EQ(loaded[0].path(), object);
  loaded.clear();
  const backend::ObjectCache cache(options.cache_folder);
  const std::string aside = cache.path_aside("other");
  write_text(aside, "hello");
  ASSERT_FALSE(cache.store_object(aside, fs::path(object).filename()));
  built_elsewhere({{"a", source("one")}});
  EXPECT_STREQ(loaded[0].program()->hash, "one");
}

// Clearing a cache while programs are built is not their fault.
TEST_F(ProgramCache, ACacheThatIsRemoved) {
  options.compiler = compiler("removing", "rm -rf " + options.cache_folder + "; exec g++ \"$@\"");
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  EXPECT_EQ(codes(), std::vector{Code::cache_not_writable});
  EXPECT_STREQ(loaded[0].program()->hash, "one");
}

// An obstacle to one file is reported as such: no disk is full.
TEST_F(ProgramCache, AFolderWhereAnObjectBelongs) {
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  const std::string object = loaded[0].path();
  loaded.clear();
  fs::remove(object);
  fs::create_directory(object);
  ASSERT_EQ(build({{"a", source("one")}}), Built::done);
  ASSERT_EQ(codes(), std::vector{Code::cache_not_writable});
  EXPECT_EQ(
      sink->sorted()[0].message,
      "`" + object +
          "` cannot be written: is a directory; programs are built in a temporary folder, again in every run");
  EXPECT_EQ(sink->sorted()[0].hint,
            "remove what is there, or set `PIPER_CACHE` to a folder that can be written");
}

// A name has no limit, but a file name does.
TEST_F(ProgramCache, ALongName) {
  const std::string name(300, 'a');
  ASSERT_EQ(build({{name, source("one")}, {name, source("two")}}), Built::done);
  EXPECT_TRUE(sink->empty());
  EXPECT_STREQ(loaded[1].program()->hash, "two");
}

// If nothing can be written at all the interpreter takes over, and reports the reason.
TEST_F(ProgramCache, ADiskThatFills) {
  options.compiler = compiler(
      "full", "echo 'fatal error: error writing to /tmp/ccX.s: No space left on device'; exit 1");
  EXPECT_EQ(build({{"a", source("one")}}), Built::no_compiler);
  ASSERT_EQ(codes(), std::vector{Code::cache_not_writable});
  EXPECT_NE(sink->sorted()[0].message.find(
                options.cache_folder +
                "`, and a temporary folder cannot be written either; the interpreter"),
            std::string::npos);
}

TEST_F(ProgramCache, ACompilerThatMakesSomethingElse) {
  options.compiler = compiler("garbage", "for last; do :; done; echo hello >\"$last\"");
  EXPECT_EQ(build({{"a", source("one")}}), Built::failed);
  EXPECT_EQ(codes(), std::vector{Code::program_does_not_load});
  options.compiler = compiler("nothing", "exit 0");
  EXPECT_EQ(build({{"a", source("one")}}), Built::failed);
  EXPECT_EQ(codes(), std::vector{Code::program_does_not_load});
  options.compiler.clear();
  EXPECT_EQ(build({{"a", source("one", "77")}}), Built::failed);
  EXPECT_EQ(codes(), std::vector{Code::program_does_not_load});
}

}  // namespace
}  // namespace piper::test
