#pragma once
// The lines that several processes of a run print, as one text: what process 0 prints comes as it
// is, lines of others with their name before them. A line that another process has printed as often
// is left out, because all processes report a failure; lines of long ago are forgotten.
//
//   MergedOutput merged({"", "rank 1: "}, write);
//   merged.add(1, "error P6001: ...\n");   // `rank 1: error P6001: ...`
//   merged.end(1);

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace piper::runtime {

class MergedOutput {
 public:
  using Write = std::function<void(std::string_view)>;
  /// `names`: of the processes, before their lines.
  MergedOutput(std::vector<std::string> names, Write write);

  void add(std::size_t process, std::string_view text);
  /// The process prints no more: its last line may have no end.
  void end(std::size_t process);

 private:
  void print_line(std::size_t process, std::string line);

  struct Printer {
    std::string name;
    std::string begun = {};  // a line without its end
    std::map<std::string, std::size_t> lines = {};
  };
  std::vector<Printer> printers_;
  std::map<std::string, std::size_t> printed_;
  const Write write_;
};

}  // namespace piper::runtime
