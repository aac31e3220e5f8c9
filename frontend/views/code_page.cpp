#include "frontend/views/code_page.h"

namespace piper::views {

std::string code_page(Code code) {
  std::string text(page(code));
  for (std::size_t begin; (begin = text.find("<!-- ")) != std::string::npos;) {
    const std::size_t end = text.find("-->\n", begin);
    text.erase(begin, end == std::string::npos ? end : end + 4 - begin);
  }
  return text;
}

}  // namespace piper::views
