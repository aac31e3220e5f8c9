#include "frontend/lsp/server.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/environment.h"

namespace piper::tools {

int run_lsp(Console& console, const Arguments&) {
  if (console.in == nullptr) return kUsage;
  lsp::Server server(
      {PIPER_VERSION, jit_options(console.environment).cache_folder, console.program},
      console.files);
  return server.run(*console.in, console.out);
}

}  // namespace piper::tools
