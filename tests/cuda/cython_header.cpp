#include "tests/cuda/cython_header.h"

#include <regex>
#include <sstream>

namespace piper::test {

namespace {

/// Line by line: a block of enumerators or members lasts as long as its lines are indented.
class Converter {
 public:
  Converter(const std::set<std::string>& structures, const std::set<std::string>& functions)
      : structures_(structures), functions_(functions) {}

  std::string run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      if (line.front() != ' ') end_block();
      convert(line);
    }
    end_block();
    return header_;
  }

 private:
  enum class Block : std::uint8_t { none, enumeration, structure };

  void end_block() {
    if (block_ == Block::structure) header_ += "};\n";
    block_ = Block::none;
  }

  void convert(const std::string& line) {
    static const std::regex kEnumeration(R"(ctypedef enum (\w+) .*)"),
        kEnumerator(R"( +(\w+) "\w+" = (-?(?:0x)?[0-9a-fA-F]+))"),
        kStructure(R"(ctypedef struct (\w+) .*)"), kMember(R"( +(.+))"),
        kName(R"( *ctypedef ([\w\*]+) (\w+) '\w+')"),
        kFunction(R"(cdef (.*[ \*])(\w+)\((.*)\) except.*)");
    std::smatch found;
    if (std::regex_match(line, found, kEnumeration)) {
      header_ += "typedef int " + found[1].str() + ";\n";
      block_ = Block::enumeration;
    } else if (std::regex_match(line, found, kStructure)) {
      if (!structures_.contains(found[1])) return;
      header_ += "struct " + found[1].str() + " {\n";
      block_ = Block::structure;
    } else if (block_ == Block::enumeration && std::regex_match(line, found, kEnumerator)) {
      header_ += "constexpr long long " + found[1].str() + " = " + found[2].str() + ";\n";
    } else if (block_ == Block::structure && std::regex_match(line, found, kMember)) {
      header_ += "  " + found[1].str() + ";\n";
    } else if (std::regex_match(line, found, kName)) {
      header_ += "typedef " + found[1].str() + " " + found[2].str() + ";\n";
    } else if (std::regex_match(line, found, kFunction) && functions_.contains(found[2])) {
      header_ += "extern \"C\" " + found[1].str() + found[2].str() + "(" + found[3].str() + ");\n";
    }
  }

  const std::set<std::string>&structures_, &functions_;
  std::string header_;
  Block block_ = Block::none;
};

}  // namespace

std::string header_of_cython(const std::string& text, const std::set<std::string>& structures,
                             const std::set<std::string>& functions) {
  return Converter(structures, functions).run(text);
}

}  // namespace piper::test
