#include "tests/cuda/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/service/compilation.h"
#include "frontend/source/source_manager.h"
#include "tests/support/golden.h"

namespace piper::test {

namespace {

/// The names of the trains of a program text.
std::vector<std::string> trains_of(const std::string& text) {
  std::vector<std::string> names;
  constexpr std::string_view kBegin = "\ntrain ";
  for (std::size_t at = text.find(kBegin); at != std::string::npos;
       at = text.find(kBegin, at + 1)) {
    const std::size_t name = at + kBegin.size();
    names.push_back(text.substr(name, text.find(' ', name) - name));
  }
  return names;
}

}  // namespace

CudaProgram cuda_program(const std::string& path, std::optional<tensor::DType> dtype,
                         const std::string& train) {
  const source::RealFileSystem files;
  service::Compilation compilation(files);
  DiagnosticSink sink(compilation.context().locations);
  const auto told = [&] {
    return path + "\n" + render_text(sink.sorted(), compilation.context().locations.files());
  };
  CudaProgram made{path, {}};
  if (!compilation.open(path, sink)) {
    ADD_FAILURE() << told();
    return made;
  }
  auto subject = compilation.subject(train, true, sink);
  if (subject && dtype) subject = compilation.relower(*subject, *dtype, sink);
  EXPECT_TRUE(subject) << told();
  if (!subject) return made;
  subject->lowered.strategy.settings.device = directive::Platform::cuda;
  const auto dag = compilation.compile(*subject, {}, sink);
  EXPECT_TRUE(dag) << told();
  if (dag) made.programs = backend::make_programs(*dag, backend::Target::cuda);
  return made;
}

std::vector<CudaProgram> cuda_programs(std::optional<tensor::DType> dtype) {
  std::vector<std::string> paths;
  for (const char* folder : {"examples", "tests/cuda/testdata"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      // Schedules alone have kernels of no model.
      const bool trains =
          read_text(entry.path()).value_or("").find("\ntrain ") != std::string::npos;
      if (entry.path().extension() == ".pipe" && trains) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<CudaProgram> programs;
  for (const std::string& path : paths) {
    for (const std::string& train : trains_of(read_text(path).value_or("")))
      programs.push_back(cuda_program(path, dtype, train));
  }
  return programs;
}

}  // namespace piper::test
