#include "frontend/pictures/screen.h"

#include <algorithm>

namespace piper::pictures {

void CellLine::append(std::string_view text, std::uint8_t colour) {
  text_ += text;
  colours_.insert(colours_.end(), text.size(), colour);
}

std::string CellLine::print(std::size_t begin, std::size_t end, bool colours) const {
  end = std::min(end, text_.size());
  while (end > begin && text_[end - 1] == ' ' && (!colours || colours_[end - 1] == kPlain)) --end;
  std::string out;
  std::uint8_t current = kPlain;
  for (std::size_t i = begin; i < end; ++i) {
    if (colours && colours_[i] != current) {
      current = colours_[i];
      // Black on the colour: all of them are light enough for it.
      out += current == kPlain ? "\x1b[0m" : "\x1b[38;5;16;48;5;" + std::to_string(current) + "m";
    }
    out += text_[i];
  }
  if (current != kPlain) out += "\x1b[0m";
  return out;
}

std::vector<std::size_t> fold(const std::vector<bool>& inside, std::size_t most) {
  std::vector<std::size_t> cuts = {0};
  while (cuts.back() < inside.size()) {
    std::size_t next = std::min(cuts.back() + std::max<std::size_t>(most, 1), inside.size());
    if (next < inside.size()) {
      std::size_t clean = next;
      while (clean > cuts.back() + most / 2 && inside[clean]) --clean;
      if (clean > cuts.back() && !inside[clean]) next = clean;
    }
    cuts.push_back(next);
  }
  return cuts;
}

}  // namespace piper::pictures
