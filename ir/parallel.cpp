#include "ir/parallel.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <vector>

namespace piper {

namespace {

/// Threads that sleep until there is work. A woken thread goes to an idle core; a new one would
/// often share its creator's core. LLVM's pool ends the process if the system has no more threads,
/// and waits for tasks that have not begun.
class Pool {
 public:
  void run(std::size_t helpers, llvm::function_ref<void()> work) {
    Job job{work, helpers, 0, nullptr};
    std::unique_lock lock(mutex_);
    jobs_.push_back(&job);
    start_threads(helpers);
    changed_.notify_all();
    lock.unlock();
    std::exception_ptr failure = run(work);
    lock.lock();
    std::erase(jobs_, &job);
    // A thread that runs this job may itself have posted jobs, so this one helps until the job is
    // done.
    help_until(lock, [&job] { return job.inside == 0; });
    lock.unlock();
    if (failure == nullptr) failure = job.failure;
    if (failure != nullptr) std::rethrow_exception(failure);
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  struct Job {
    llvm::function_ref<void()> work;
    std::size_t wanted;          // threads that may still join the caller
    std::size_t inside;          // threads that have joined
    std::exception_ptr failure;  // of one of them
  };

  static std::exception_ptr run(llvm::function_ref<void()> work) {
    try {
      work();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void start_threads(std::size_t count) {
    try {
      while (threads_.size() < count) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      // The system has no more threads: the existing ones take all items.
    } catch (const std::bad_alloc&) {
      // No memory to store a thread either.
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    help_until(lock, [this] { return ending_; });
  }

  template <typename Done>
  void help_until(std::unique_lock<std::mutex>& lock, Done done) {
    for (;;) {
      changed_.wait(lock, [&] { return done() || !jobs_.empty(); });
      if (done()) return;
      Job& job = *jobs_.front();
      ++job.inside;
      if (--job.wanted == 0) jobs_.pop_front();
      lock.unlock();
      std::exception_ptr failure = run(job.work);
      lock.lock();
      if (failure != nullptr) job.failure = std::move(failure);
      if (--job.inside == 0) changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job*> jobs_;  // those that more threads may join
  std::vector<std::thread> threads_;
  bool ending_ = false;
};

}  // namespace

void run_workers(std::size_t workers, llvm::function_ref<void()> work) {
  if (workers < 2) return work();
  static Pool pool;
  pool.run(workers - 1, work);
}

}  // namespace piper
