#pragma once
// The files that a command or its program reads. A command never writes its output over one of
// them.
//
//   InputFiles inputs;
//   inputs.add("rows.csv");
//   inputs.has("./rows.csv")   ->   true

#include <string>
#include <vector>

#include "ir/directive/directive.h"
#include "ir/location.h"

namespace piper::tools {

struct Arguments;

class InputFiles {
 public:
  /// A file. Need not exist.
  void add(std::string path);
  /// A file, or a folder with all files below it.
  void add_tree(std::string path);
  /// The files that the command line names: programs, also as FILE:NAME, costs and the machine.
  void add_named(const Arguments& arguments);
  /// The data and the initial weights of a train: files, or folders with all files below them.
  void add_data(const directive::Settings& settings);
  void add_sources(const SourceTable& sources);

  /// Whether `path` exists and is one of them, under this or another name.
  bool has(const std::string& path) const;

 private:
  std::vector<std::string> files_, folders_;
};

}  // namespace piper::tools
