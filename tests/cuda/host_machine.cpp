#include "tests/cuda/host_machine.h"

#include <filesystem>
#include <sstream>

#include "frontend/tools/driver.h"

namespace piper::test {

std::unique_ptr<runtime::cuda::Driver> HostMachine::open(std::uint32_t gpu,
                                                         runtime::Failure& failure) {
  if (gpu >= gpus) {
    failure = {.code = runtime::kCudaMissing, .message = "there are fewer GPUs than processes"};
    return nullptr;
  }
  auto made = std::make_unique<HostDriver>(options);
  driver = made.get();
  return made;
}

std::unique_ptr<runtime::cuda::Nccl> HostMachine::open_nccl(runtime::Failure& failure) {
  if (nccl.folder.empty()) {
    failure = {.code = runtime::kCudaMissing, .message = "there is no NCCL"};
    return nullptr;
  }
  return std::make_unique<TestNccl>(*driver, nccl);
}

bool HostMachine::build(const backend::cuda::KernelSet& kernels, std::vector<std::string>& images,
                        runtime::Failure&) {
  std::string& object = objects[kernels.source()];
  if (object.empty()) {
    std::filesystem::create_directories(folder.path() / std::to_string(objects.size()));
    object = build_host_image(kernels, folder.path() / std::to_string(objects.size()));
  }
  if (own.empty()) own = build_own_host_image(folder.path());
  images = {object, own};
  return true;
}

Ended train(const std::string& text, HostMachine* machine, std::vector<std::string> words,
            std::map<std::string, std::string> environment) {
  source::MemoryFileSystem files;
  files.add("tiny.pipe", text);
  std::ostringstream out, err;
  environment.emplace("PIPER_MATH", "builtin");
  tools::Console console{out, err, files, std::move(environment)};
  console.cuda = machine;
  words.insert(words.begin(), {"train", "tiny.pipe", "--interpret"});
  const int code = tools::run(words, console);
  return {code, out.str(), err.str()};
}

std::string line_with(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace piper::test
