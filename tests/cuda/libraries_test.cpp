// Reports of `piper doctor` about libraries that a run would refuse.
#include "backend/cuda/libraries.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using backend::cuda::find_libraries;
using backend::cuda::find_torch_cuda;
using backend::cuda::Found;

constexpr const char* kVersion = "__version__ = '2.11.0+cu130'\n";

TEST(Libraries, OnesThatAreCutOffAreNotFound) {
  const TemporaryFolder folder;
  const std::string cut = read_text("/proc/self/exe").value_or("").substr(0, 100000);
  for (const char* name : {"libnvrtc-builtins.so.13.0", "libnvrtc.so.13", "libcublasLt.so.13",
                           "libnccl.so.2", "lib/libtorch_cuda.so"}) {
    folder.write(name, cut);
  }
  folder.write("version.py", kVersion);
  const auto found = find_libraries(
      {{"PIPER_CUDA_PATH", folder.path().string()}, {"PIPER_TORCH_PATH", folder.path().string()}});
  ASSERT_EQ(found.size(), 4u);
  for (const Found& each : found) {
    EXPECT_EQ(each.path, "") << each.name;
    EXPECT_NE(each.reason.find("` is cut off: 100000 bytes of "), std::string::npos)
        << each.name << ": " << each.reason;
  }
}

/// As wheels lie: the folder that has `nvidia`, and `nvidia/cu13` in it, which has no NCCL.
TEST(Libraries, WheelsAreFoundFromTheFolderOfCudaToo) {
  const TemporaryFolder folder;
  const auto library = std::filesystem::canonical("/proc/self/exe").parent_path() /
                       "test_cublas_lt" / "libcublasLt.so.13";
  for (const char* file : {"nvidia/cu13/lib/libcublasLt.so.13", "nvidia/nccl/lib/libnccl.so.2"}) {
    std::filesystem::create_directories((folder.path() / file).parent_path());
    std::filesystem::create_symlink(library, folder.path() / file);
  }
  for (const char* named : {"", "nvidia/cu13"}) {
    for (const char* name : {"libcublasLt.so", "libnccl.so"}) {
      std::string path, reason;
      EXPECT_NE(backend::cuda::open_library({{"PIPER_CUDA_PATH", (folder.path() / named).string()}},
                                            name, {}, path, reason),
                nullptr)
          << reason;
    }
  }
}

TEST(Libraries, LibTorchOfAnotherVersionIsNotFound) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "lib");
  const auto library = folder.path() / "lib" / "libtorch_cuda.so";
  std::filesystem::create_symlink(std::filesystem::canonical("/proc/self/exe"), library);
  const auto found = [&] {
    return find_torch_cuda({{"PIPER_TORCH_PATH", folder.path().string()}});
  };
  EXPECT_EQ(found().reason,
            "`" + library.string() + "` is of PyTorch an unknown version, and piper needs 2.11.0");
  folder.write("version.py", "__version__ = '2.10.0+cu128'\n");
  EXPECT_EQ(found().path, "");
  EXPECT_EQ(found().reason,
            "`" + library.string() + "` is of PyTorch 2.10.0+cu128, and piper needs 2.11.0");
  EXPECT_NE(found().install.find("pip install torch==2.11.0"), std::string::npos);
  folder.write("version.py", kVersion);
  EXPECT_EQ(found().path, library.string());
  EXPECT_EQ(found().version, "2.11.0+cu130");
  EXPECT_EQ(found().reason, "");
  std::filesystem::remove(library);
  folder.write("lib/libtorch_cuda.so", "");
  EXPECT_EQ(found().path, "");
  EXPECT_EQ(found().reason, "`" + library.string() + "` is empty");
}

}  // namespace
}  // namespace piper::test
