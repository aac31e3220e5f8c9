#pragma once
// A disk that blocks the threads that read from it.
//
//   SlowDisk disk("def depth() -> int { return 4 }\n");
//   client.open("/main.pipe", "use slow\n");
//   disk.wait_for(1);
//   disk.open();

#include <condition_variable>
#include <mutex>
#include <string>

#include "frontend/source/source_manager.h"

namespace piper::test {

/// `/slow.pipe` is read when the disk is open; there is no other file.
class SlowDisk : public source::FileSystem {
 public:
  explicit SlowDisk(std::string text) : text_(std::move(text)) {}

  source::ReadResult read(std::string_view path, std::uint64_t) const override {
    if (path != "/slow.pipe") return {std::nullopt, "no such file", 0};
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    return {text_, "", 0};
  }
  /// Waits until this number of threads have asked.
  void wait_for(int readers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= readers; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::string text_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int waiting_ = 0;
  bool open_ = false;
};

}  // namespace piper::test
