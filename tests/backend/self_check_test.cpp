// No compiler is trusted with the law of values: programs that it builds are used where it computes
// the evaluator's numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <regex>

#include "backend/jit/jit.h"
#include "backend/jit/self_check.h"
#include "backend/kernel/emit_bodies.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;
using backend::Built;
using testing::HasSubstr;

constexpr const char* kProgram =
    "#include \"runtime/abi.h\"\n"
    "extern \"C\" const PiperProgram* piper_program_v1(void) {\n  static const PiperProgram program = {.abi_version = PIPER_ABI_VERSION, .hash = \"one\"};\n  return &program;\n}\n";

class SelfCheck : public testing::Test {
 protected:
  Built build(const std::string& compiler) {
    loaded.clear();
    sink.emplace(locations);
    backend::JitOptions options;
    options.compiler = compiler;
    options.cache_folder = (folder.path() / "cache").string();
    return backend::build_programs({{"a", kProgram}}, options, loaded, *sink);
  }
  int objects() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder.path() / "cache"))
      count += entry.path().extension() == ".so";
    return count;
  }

  LocationTable locations;
  TemporaryFolder folder;
  std::vector<backend::LoadedProgram> loaded;
  std::optional<DiagnosticSink> sink;
};

TEST_F(SelfCheck, IsBuiltOncePerCache) {
  ASSERT_EQ(build(""), Built::done);
  EXPECT_TRUE(sink->empty());
  EXPECT_EQ(loaded.size(), 1u);
  EXPECT_EQ(objects(), 2);
  ASSERT_EQ(build(""), Built::done);
  EXPECT_TRUE(loaded[0].from_cache());
  EXPECT_EQ(objects(), 2);
}

// A compiler that changes a constant, and a flag that lets one add in another order: also where the
// object was built by an earlier run.
TEST_F(SelfCheck, ACompilerWithOtherNumbersIsNotUsed) {
  const std::string changing = folder.write(
      "changing",
      "#!/bin/sh\nif [ \"$1\" = --version ]; then echo changing; exit 0; fi\n"
      "for a; do case $a in */self_check*.cpp) sed -i 's/0\\.125/0.25/' \"$a\";; esac; done\nexec g++ \"$@\"\n");
  chmod(changing.c_str(), 0755);
  for (const std::string& compiler : {changing, std::string("g++ -ffast-math")}) {
    for (int run = 0; run < 2; ++run) {
      EXPECT_EQ(build(compiler), Built::no_compiler) << compiler;
      EXPECT_TRUE(loaded.empty());
      ASSERT_EQ(sink->sorted().size(), 1u) << compiler;
      const Diagnostic said = sink->sorted()[0];
      EXPECT_EQ(said.code, Code::compiler_computes_wrong);
      EXPECT_THAT(said.message, HasSubstr("compiles programs wrongly here: of the "));
      EXPECT_THAT(said.message, HasSubstr("the interpreter runs the program"));
      const std::size_t object = said.hint.find(folder.path().string());
      ASSERT_NE(object, std::string::npos) << said.hint;
      EXPECT_TRUE(fs::exists(said.hint.substr(object, said.hint.find('`', object) - object)))
          << said.hint;
    }
  }
  // Objects of such a compiler in the cache are not used with another one.
  EXPECT_EQ(build(""), Built::done);
  EXPECT_TRUE(sink->empty());
  // Loading an object built with `-ffast-math` has not changed this thread's arithmetic.
  volatile double small = 0x1p-1022;
  small = small / 4;
  EXPECT_GT(small, 0);
}

#ifdef __x86_64__
// g++ 12.2 permutes vectors of eight doubles wrongly. The test needs no processor with such
// vectors: it shows that programs only copy or clear in such pieces, with every element at its own
// position.
TEST_F(SelfCheck, NothingMovesWithinVectorsOf512Bits) {
  static const std::regex moves(
      "\tv(perm|shuf|pshuf|unpck|punpck|align|palign|blend|pblend|insert|extract)[^\n]*%zmm");
  const std::string source = folder.write("check.cpp", backend::SelfCheck().source());
  const auto assembly = [&](const std::string& flags) {
    const ProcessResult made = run_process({"/bin/sh", "-c",
                                            std::string("g++ ") + backend::kKernelFlags + " " +
                                                flags + " -march=x86-64-v4 -I. -S -o - " + source});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return made.out;
  };
  EXPECT_TRUE(std::regex_search(assembly("-mprefer-vector-width=512"), moves));
  const std::string ours = assembly(backend::machine_flags());
  EXPECT_NE(ours.find("%ymm"), std::string::npos);
  std::smatch found;
  EXPECT_FALSE(std::regex_search(ours, found, moves)) << found.str();
}
#endif

}  // namespace
}  // namespace piper::test
