// The cache of built programs runs no code of other users: folders and objects that another user
// may have written are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "backend/jit/jit.h"
#include "backend/jit/object_cache.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;
using backend::Built;
using backend::ObjectCache;
using testing::HasSubstr;

constexpr uid_t kAnother = 65533;
constexpr const char* kProgram =
    "#include \"runtime/abi.h\"\n"
    "extern \"C\" const PiperProgram* piper_program_v1(void) {\n  static const PiperProgram program = {.abi_version = PIPER_ABI_VERSION, .hash = \"one\"};\n  return &program;\n}\n";

void make(const fs::path& path, mode_t mode) {
  fs::create_directories(path);
  ASSERT_EQ(chmod(path.c_str(), mode), 0);
}
void give_away(const fs::path& path) { ASSERT_EQ(lchown(path.c_str(), kAnother, kAnother), 0); }

struct Row {
  const char* what;
  std::function<void(const fs::path& top)> arrange;  // the cache is `top`/up/cache
  const char* refused;                               // the message about it; empty: it is used
  bool root = false;                                 // only root can arrange it
};

TEST(ProgramTrust, FoldersThatAnotherUserCanChange) {
  const Row rows[] = {
      {"nothing is there", [](const fs::path&) {}, ""},
      {"readable by all", [](const fs::path& top) { make(top / "up/cache", 0755); }, ""},
      {"a sticky folder above", [](const fs::path& top) { make(top / "up", 01777); }, ""},
      {"a link",
       [](const fs::path& top) {
         make(top / "real", 0700);
         make(top / "up", 0700);
         fs::create_symlink("../real", top / "up/cache");
       },
       ""},
      {"the group writes", [](const fs::path& top) { make(top / "up/cache", 0775); },
       "up/cache` can be written by its group (mode 0775)"},
      {"all write", [](const fs::path& top) { make(top / "up/cache", 0757); },
       "up/cache` can be written by all users (mode 0757)"},
      {"all write, sticky", [](const fs::path& top) { make(top / "up/cache", 01777); },
       "up/cache` can be written by all users (mode 1777)"},
      {"all write above",
       [](const fs::path& top) {
         make(top / "up/cache", 0700);
         make(top / "up", 0777);
       },
       "up` can be written by all users (mode 0777)"},
      {"a link to where all write",
       [](const fs::path& top) {
         make(top / "real", 0777);
         make(top / "up", 0700);
         fs::create_symlink("../real", top / "up/cache");
       },
       "real` can be written by all users (mode 0777)"},
      {"a link through where all write",
       [](const fs::path& top) {
         make(top / "open/real", 0700);
         make(top / "open", 0777);
         make(top / "up", 0700);
         fs::create_symlink(top / "open/real", top / "up/cache");
       },
       "open` can be written by all users (mode 0777)"},
      {"another's",
       [](const fs::path& top) {
         make(top / "up/cache", 0700);
         give_away(top / "up/cache");
       },
       "up/cache` belongs to user 65533", true},
      {"another's above",
       [](const fs::path& top) {
         make(top / "up/cache", 0700);
         give_away(top / "up");
       },
       "up` belongs to user 65533", true},
      {"another's link",
       [](const fs::path& top) {
         make(top / "real", 0700);
         make(top / "up", 01777);
         fs::create_symlink("../real", top / "up/cache");
         give_away(top / "up/cache");
       },
       "up/cache` belongs to user 65533", true},
  };
  for (const Row& row : rows) {
    if (row.root && geteuid() != 0) continue;
    SCOPED_TRACE(row.what);
    const TemporaryFolder top;
    row.arrange(top.path());
    const fs::path folder = top.path() / "up/cache";
    const ObjectCache cache(folder);
    EXPECT_EQ(static_cast<bool>(cache.error()), cache.distrust().has_value());
    EXPECT_EQ(cache.distrust().has_value(), *row.refused != '\0');
    if (cache.distrust()) {
      EXPECT_THAT(cache.distrust()->path + "` " + cache.distrust()->reason, HasSubstr(row.refused));
      EXPECT_TRUE(fs::is_empty(folder)) << "nothing is written there";
    }
  }
}

TEST(ProgramTrust, MissingFoldersAreMadeForThisUserAlone) {
  const TemporaryFolder top;
  const mode_t before = umask(0);
  const ObjectCache cache(top.path() / "a/b/cache");
  umask(before);
  ASSERT_FALSE(cache.error());
  for (const char* name : {"a", "a/b", "a/b/cache"})
    EXPECT_EQ(fs::status(top.path() / name).permissions(), fs::perms::owner_all) << name;
}

// A user who knows the name of a file in the making cannot redirect it through a link.
TEST(ProgramTrust, FilesInTheMakingFollowNoLink) {
  const TemporaryFolder top;
  const std::string victim = top.write("victim", "as it was");
  const ObjectCache cache(top.path() / "cache");
  const std::string aside = cache.path_aside("a.cpp");
  const std::size_t digits = aside.rfind(".part"), count = aside.rfind('.', digits - 1) + 1;
  const std::string next = aside.substr(0, count) +
                           std::to_string(std::stoul(aside.substr(count, digits - count)) + 1) +
                           ".part";
  fs::create_symlink(victim, next);
  EXPECT_FALSE(cache.store_text("a.cpp", "text"));
  EXPECT_EQ(read_text(victim), "as it was");
  EXPECT_EQ(read_text(cache.path("a.cpp")), "text");
  EXPECT_FALSE(fs::is_symlink(cache.path("a.cpp")));
}

class CacheOfObjects : public testing::Test {
 protected:
  Built build() {
    loaded.clear();
    sink.emplace(locations);
    backend::JitOptions options;
    options.cache_folder = (folder.path() / "cache").string();
    options.self_check = false;
    const Built built = backend::build_programs({{"a", kProgram}}, options, loaded, *sink);
    if (built != Built::done) ADD_FAILURE() << render_text(sink->sorted(), locations.files());
    return built;
  }
  void expect_refused(const std::string& what) {
    ASSERT_EQ(sink->sorted().size(), 1u);
    EXPECT_EQ(sink->sorted()[0].code, Code::cache_not_trusted);
    EXPECT_THAT(sink->sorted()[0].message, HasSubstr(what));
  }

  LocationTable locations;
  TemporaryFolder folder;
  std::vector<backend::LoadedProgram> loaded;
  std::optional<DiagnosticSink> sink;
};

// With any umask, the next process trusts the objects of this one.
TEST_F(CacheOfObjects, AnObjectOfAnotherUserIsBuiltAgain) {
  const mode_t before = umask(0002);
  ASSERT_EQ(build(), Built::done);
  umask(before);
  ASSERT_EQ(build(), Built::done);
  EXPECT_TRUE(sink->empty());
  EXPECT_TRUE(loaded[0].from_cache());
  const std::string object = loaded[0].path();
  const std::pair<std::function<void()>, std::string> damages[] = {
      {[&] { chmod(object.c_str(), 0775); }, "can be written by its group (mode 0775)"},
      {[&] { chmod(object.c_str(), 0757); }, "can be written by all users (mode 0757)"},
      {[&] { give_away(object); }, "belongs to user 65533"},
  };
  for (const auto& [damage, said] : damages) {
    if (said.starts_with("belongs") && geteuid() != 0) continue;
    damage();
    ASSERT_EQ(build(), Built::done);
    expect_refused("`" + object + "` of the cache is not used, and built again: it " + said);
    EXPECT_FALSE(loaded[0].from_cache());
    ASSERT_EQ(build(), Built::done);
    EXPECT_TRUE(sink->empty());
    EXPECT_TRUE(loaded[0].from_cache());
  }
}

TEST_F(CacheOfObjects, ARefusedFolderIsNotUsedAtAll) {
  ASSERT_EQ(build(), Built::done);
  const fs::path cache = folder.path() / "cache";
  const std::string object = loaded[0].path();
  fs::path headers;
  for (const auto& entry : fs::directory_iterator(cache)) {
    if (entry.is_directory()) headers = entry.path();
  }
  for (const fs::path& open : {cache, headers, headers / "runtime"}) {
    const auto was = fs::status(open).permissions();
    ASSERT_EQ(chmod(open.c_str(), 0777), 0);
    ASSERT_EQ(build(), Built::done);
    expect_refused(
        "the cache folder `" + cache.string() + "` is not used: `" + open.string() +
        "` can be written by all users (mode 0777); programs are built in a temporary folder, again in every run");
    EXPECT_EQ(sink->sorted()[0].hint,
              "`chmod go-w " + open.string() + "`, or set `PIPER_CACHE` to a folder of your own");
    EXPECT_NE(loaded[0].path(), object);
    EXPECT_FALSE(loaded[0].from_cache());
    fs::permissions(open, was);
  }
  ASSERT_EQ(build(), Built::done);
  EXPECT_EQ(loaded[0].path(), object);
}

}  // namespace
}  // namespace piper::test
