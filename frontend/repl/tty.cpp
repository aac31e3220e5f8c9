#include "frontend/repl/tty.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace piper::repl {
namespace {

constexpr std::array kEnding = {SIGTERM, SIGHUP, SIGQUIT};

// For the handler, which gets no object.
termios as_found;
int raw_terminal = -1;
std::atomic<bool> is_raw = false;
std::array<struct sigaction, kEnding.size()> handlers_before;

/// Restores the terminal, then lets the signal have its usual effect.
void give_back(int signal) {
  if (is_raw.load()) tcsetattr(raw_terminal, TCSANOW, &as_found);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

Tty::Tty(int input, int output) : input_(input), output_(output) {
  raw_terminal = input;
  for (std::size_t i = 0; i < kEnding.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = give_back;
    sigaction(kEnding[i], &action, &handlers_before[i]);
  }
}

Tty::~Tty() {
  set_raw(false);
  for (std::size_t i = 0; i < kEnding.size(); ++i)
    sigaction(kEnding[i], &handlers_before[i], nullptr);
}

void Tty::set_raw(bool raw) {
  if (raw == raw_) return;
  if (raw) {
    if (tcgetattr(input_, &as_found) != 0) return;
    termios settings = as_found;
    settings.c_iflag &= ~static_cast<tcflag_t>(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN | ISIG);
    settings.c_cc[VMIN] = 1;
    settings.c_cc[VTIME] = 0;
    if (tcsetattr(input_, TCSADRAIN, &settings) != 0) return;
  } else {
    tcsetattr(input_, TCSADRAIN, &as_found);
  }
  raw_ = raw;
  is_raw.store(raw);
}

Terminal::Wait Tty::read(std::string& bytes, int milliseconds) {
  pollfd wanted{input_, POLLIN, 0};
  const int ready = poll(&wanted, 1, milliseconds);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Wait::nothing;
  if (ready < 0) return Wait::closed;
  char buffer[4096];
  const ssize_t count = ::read(input_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return Wait::nothing;
  if (count <= 0) return Wait::closed;
  bytes.assign(buffer, static_cast<std::size_t>(count));
  return Wait::bytes;
}

void Tty::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(output_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // a terminal that is gone: the next read says so
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t Tty::columns() const {
  winsize size{};
  return ioctl(output_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Tty::suspend() { raise(SIGTSTP); }

}  // namespace piper::repl
