// Libraries that a user's path names: whole ones open, others are refused with words, where the
// loader would die of SIGBUS.
#include "runtime/shared_library.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::runtime {
namespace {

using test::TemporaryFolder;

/// A shared library of this machine.
std::string library_of_c() {
  Dl_info found{};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(&dlopen), &found), 0);
  return test::read_text(found.dli_fname).value_or("");
}

std::string refused(const std::string& path) {
  std::string reason;
  EXPECT_EQ(open_shared_library(path, RTLD_NOW | RTLD_LOCAL, reason), nullptr) << path;
  return reason;
}

TEST(SharedLibrary, OneThatIsCutOffIsRefused) {
  const TemporaryFolder folder;
  const std::string whole = library_of_c();
  ASSERT_GT(whole.size(), 100000u);
  for (const std::size_t bytes : {64u, 100u, 300u, 4096u, 100000u}) {
    const std::string path = folder.write("libcut.so", whole.substr(0, bytes)),
                      reason = refused(path);
    EXPECT_TRUE(
        reason.starts_with("`" + path + "` is cut off: " + std::to_string(bytes) + " bytes of "))
        << reason;
  }
}

TEST(SharedLibrary, NonLibrariesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(refused(folder.write("libempty.so", "")).find("` is empty"), std::string::npos);
  EXPECT_NE(refused(folder.write("libshort.so", "\177ELF")).find("` is no shared library"),
            std::string::npos);
  EXPECT_NE(
      refused(folder.write(
                  "libtext.so",
                  "GROUP ( /usr/lib/libnccl.so.2 ) and more, as a linker's script may have it"))
          .find("` is no shared library of 64 bits"),
      std::string::npos);
  EXPECT_NE(refused("/dev/null/libnone.so")
                .find("`/dev/null/libnone.so` cannot be opened: cannot open shared object file"),
            std::string::npos);
  EXPECT_NE(refused(folder.path().string() + "/").find("` is no shared library"),
            std::string::npos);
}

/// As LibTorch's, which the plugin with it needs.
TEST(SharedLibrary, OneWhoseNeededLibraryIsCutOffIsRefused) {
  const TemporaryFolder folder;
  const std::string needed = folder.write("below/libpiper_needed.so", ""),
                    needs = (folder.path() / "libneeds.so").string(),
                    source = folder.write("empty.c", "int piper_needed;");
  ASSERT_EQ(
      test::run_process({"cc", "-shared", "-o", needed, source, "-Wl,-soname,libpiper_needed.so"})
          .exit_code,
      0);
  const auto built = test::run_process({"cc", "-shared", "-o", needs, source, "-Wl,--no-as-needed",
                                        needed, "-Wl,-rpath,$ORIGIN/below"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(broken_library(needs), "");
  folder.write("below/libpiper_needed.so", test::read_text(needed).value_or("").substr(0, 5000));
  EXPECT_NE(refused(needs).find("/below/libpiper_needed.so` is cut off: 5000 bytes of "),
            std::string::npos)
      << refused(needs);
}

TEST(SharedLibrary, AWholeOneOpens) {
  const TemporaryFolder folder;
  std::string reason;
  EXPECT_NE(open_shared_library("libc.so.6", RTLD_NOW | RTLD_LOCAL, reason), nullptr) << reason;
  EXPECT_EQ(broken_library(folder.write("libwhole.so", library_of_c())), "");
  EXPECT_EQ(broken_library("/proc/self/exe"), "");
}

}  // namespace
}  // namespace piper::runtime
