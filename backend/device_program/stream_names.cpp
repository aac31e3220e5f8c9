#include "backend/device_program/stream_names.h"

#include "backend/kernel/names.h"

namespace piper::backend {

std::vector<std::string> stream_names(const DeviceProgram& program) {
  NameScope scope;
  std::vector<std::string> names;
  for (const ProgramStream& stream : program.streams) {
    // The prefix makes the name one of the emitter's own, which `identifier` keeps from bodies.
    names.push_back("stream_" + scope.add(stream.name));
  }
  return names;
}

std::string stream_constants(const std::vector<std::string>& names) {
  std::string text = "enum : uint32_t {\n";
  for (std::size_t s = 0; s < names.size(); ++s)
    text += "  " + names[s] + " = " + std::to_string(s) + ",\n";
  return text + "};\n";
}

}  // namespace piper::backend
