#include "tests/tools/page_blocks.h"

#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "llvm/Support/JSON.h"

namespace piper::test {
namespace {

class Reader {
 public:
  void line(const std::string& line) {
    ++number_;
    if (inside_ == Inside::comment) {
      if (line == "-->") {
        end_comment();
      } else {
        body_ += line + "\n";
      }
    } else if (inside_ == Inside::block) {
      if (line.starts_with("```")) {
        inside_ = Inside::text;
        if (!saved_.empty()) files_[std::exchange(saved_, {})] = blocks_.back().text;
      } else {
        blocks_.back().text += line + "\n";
      }
    } else if (line.starts_with("<!-- ")) {
      begin_comment(line);
    } else if (line.starts_with("```")) {
      begin_block(line.substr(3));
    } else if (line.starts_with("## ")) {
      section_ = line.substr(3);
    }
  }

  std::vector<PageBlock> take() {
    EXPECT_TRUE(inside_ == Inside::text) << "a block or comment has no end";
    return std::move(blocks_);
  }

 private:
  void begin_comment(const std::string& line) {
    const bool ends = line.ends_with(" -->");
    std::istringstream words(line.substr(5, line.size() - 5 - (ends ? 4 : 0)));
    words_.clear();
    body_.clear();
    for (std::string word; words >> word;) words_.push_back(word);
    inside_ = Inside::comment;
    if (ends) end_comment();
  }

  void end_comment() {
    inside_ = Inside::text;
    const std::string kind = words_.empty() ? "" : words_.front();
    const std::vector<std::string> rest(words_.begin() + (words_.empty() ? 0 : 1), words_.end());
    if (kind == "with") {
      next_.around += body_;
      next_.arguments.insert(next_.arguments.end(), rest.begin(), rest.end());
    } else if (kind == "throughout") {
      throughout_ = body_;
      arguments_ = rest;
    } else if (kind == "gives") {
      next_.around += body_;
      next_.gives = rest;
    } else if (kind == "plan" && rest.size() == 1) {
      next_.plan = rest.front();
    } else if (kind == "file" && rest.size() == 1) {
      files_[rest.front()] = body_;
    } else if (kind == "saved" && rest.size() == 1) {
      saved_ = rest.front();
    } else {
      ADD_FAILURE()
          << "line " << number_
          << ": a comment begins with `with`, `throughout`, `gives`, `plan NAME`, `file NAME` or `saved NAME`, not with `"
          << kind << "`";
    }
  }

  void begin_block(const std::string& kind) {
    inside_ = Inside::block;
    next_.line = number_;
    next_.kind = kind;
    next_.section = section_;
    next_.around += throughout_;
    next_.arguments.insert(next_.arguments.end(), arguments_.begin(), arguments_.end());
    next_.files = files_;
    blocks_.push_back(std::exchange(next_, {}));
  }

  enum class Inside : std::uint8_t { text, comment, block } inside_ = Inside::text;
  std::size_t number_ = 0;
  std::string section_, body_, throughout_, saved_;
  std::vector<std::string> words_, arguments_;
  std::map<std::string, std::string> files_;
  PageBlock next_;
  std::vector<PageBlock> blocks_;
};

}  // namespace

std::vector<PageBlock> blocks_of(std::string_view page) {
  Reader reader;
  std::istringstream lines{std::string(page)};
  for (std::string line; std::getline(lines, line);) reader.line(line);
  return reader.take();
}

ToolResult check_block(const PageBlock& block, const std::string& format) {
  std::map<std::string, std::string> files = block.files;
  files["block.pipe"] = block.text + block.around;
  std::vector<std::string> words = {"check", "block.pipe", "--format", format};
  words.insert(words.end(), block.arguments.begin(), block.arguments.end());
  return run_tool(words, files);
}

std::vector<std::string> codes_of(const ToolResult& result) {
  auto parsed = llvm::json::parse(result.out);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return {"no JSON: " + result.out + result.err};
  }
  std::vector<std::string> codes;
  for (const llvm::json::Value& diagnostic : *parsed->getAsObject()->getArray("diagnostics")) {
    codes.push_back(diagnostic.getAsObject()->getString("code")->str());
  }
  return codes;
}

std::vector<std::string> codes_beside_notices(const PageBlock& block) {
  const bool has_model = ("\n" + block.text + block.around).find("\nmodel ") != std::string::npos;
  std::vector<std::string> codes = codes_of(check_block(block, "json"));
  std::erase_if(codes, [&](const std::string& code) {
    return code == "P6107" || (code == "P6110" && !has_model);
  });
  return codes;
}

}  // namespace piper::test
