#pragma once
// The terminal of the process, for a line editor.

#include "frontend/repl/line_editor.h"

namespace piper::repl {

/// Guarantees: the terminal has its original state whenever it is not raw, also after a signal that
/// ends the program.
class Tty : public Terminal {
 public:
  Tty(int input, int output);
  ~Tty() override;

  Wait read(std::string& bytes, int milliseconds) override;
  void write(std::string_view bytes) override;
  std::size_t columns() const override;
  void set_raw(bool raw) override;
  void suspend() override;

 private:
  int input_, output_;
  bool raw_ = false;
};

}  // namespace piper::repl
