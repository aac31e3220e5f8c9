#pragma once
// Words that are keywords at some places and names elsewhere.
//
//   names llama { ... }   ->   a keyword: a name on its line follows, and `{`
//   let names = 4         ->   a name
//   gpipe.order(p, m)     ->   a name: it follows a `.`
//   o.postpone(BW, by: 2) ->   a name: it labels an argument of a method

#include <cstddef>
#include <vector>

namespace piper::parse {

/// A token as the rule sees it; comments are none.
struct SoftToken {
  std::size_t type = 0;  // of PipeLexer
  bool first_on_line = false;
};

/// For each token, whether it is a word that could be a keyword and is a name here.
std::vector<bool> names_among_soft_keywords(const std::vector<SoftToken>& tokens);

}  // namespace piper::parse
