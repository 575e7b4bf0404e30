#include "base/file_worker.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "base/poll_until.hpp"
#include "base/signal_block.hpp"

namespace drun {

// A thread that hangs keeps its own for ever.
struct FileWorker::Bench {
  explicit Bench(std::shared_ptr<FileDescriptor> eventfd) : ready(std::move(eventfd)) {}

  void stay();  // the thread
  // False: the work is not over.
  bool take_result(std::optional<Error>& error);
  int steps_begun();
  // No more work comes. True: the thread has none, and ends at once.
  bool dismiss();

  static inline thread_local Bench* own = nullptr;  // of the thread that stays at one
  const std::shared_ptr<FileDescriptor> ready;
  std::mutex mutex;  // guards what follows
  std::condition_variable wake;
  std::function<void()> work;
  std::string asking;  // what the work is about to do
  int steps = 0;       // how often it has said so
  bool finished = false;
  std::optional<Error> failed;
  bool dismissed = false;
};

namespace {

// For remove_folder(), which is for the end of a program.
constexpr std::chrono::milliseconds kRemoveLimit{2000};

FileDescriptor make_eventfd() {
  return FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

}  // namespace

void about_to(std::string what) {
  FileWorker::Bench* const bench = FileWorker::Bench::own;
  if (bench == nullptr) return;
  const std::lock_guard lock(bench->mutex);
  bench->asking = std::move(what);
  ++bench->steps;
}

std::optional<Error> FileWork::attempt(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const std::system_error& failed) {
    return Error(failed.code(), failed.what());
  } catch (const std::exception& failed) {
    return Error(std::make_error_code(std::errc::not_enough_memory), failed.what());
  }
}

void FileWorker::Bench::stay() {
  own = this;
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return work || dismissed; });
    if (dismissed) return;
    auto next = std::exchange(work, nullptr);
    lock.unlock();
    auto error = attempt(next);
    next = nullptr;  // to close a file may hang, too
    lock.lock();
    failed = std::move(error);
    finished = true;
    ::eventfd_write(ready->get(), 1);
  }
}

int FileWorker::Bench::steps_begun() {
  const std::lock_guard lock(mutex);
  return steps;
}

bool FileWorker::Bench::dismiss() {
  const std::lock_guard lock(mutex);
  dismissed = true;
  wake.notify_one();
  return finished;
}

bool FileWorker::Bench::take_result(std::optional<Error>& error) {
  const std::lock_guard lock(mutex);
  if (finished) error = std::move(failed);
  return finished;
}

FileWorker::FileWorker() : ready_(std::make_shared<FileDescriptor>(make_eventfd())) {}

FileWorker::~FileWorker() {
  dismiss();
}

void FileWorker::run(std::chrono::milliseconds limit, std::function<void()> work, Done done) {
  jobs_.push_back({limit, std::move(work), std::move(done)});
  if (jobs_.size() == 1) begin(std::chrono::steady_clock::now());
}

// In two halves: a machine that stood still uses up one of them, not both.
void FileWorker::begin_limit(Time now) {
  deadline_ = now + jobs_.front().limit / 2;
  second_half_ = false;
}

void FileWorker::begin(Time now) {
  if (jobs_.empty()) return;
  Job& job = jobs_.front();
  begin_limit(now);
  steps_ = 1;  // which the work begins with
  if (!*ready_) *ready_ = make_eventfd();
  if (!*ready_) {
    no_thread_ = Error(
        std::error_code(errno, std::generic_category()),
        std::string("listen to a thread for files: ") + std::generic_category().message(errno));
    deadline_ = now;
    return;
  }
  const bool fresh = bench_ == nullptr;
  if (fresh) bench_ = std::make_shared<Bench>(ready_);
  {
    const std::lock_guard lock(bench_->mutex);
    bench_->work = std::move(job.work);
    bench_->asking.clear();
    bench_->steps = 0;
    bench_->finished = false;
  }
  if (!fresh) return bench_->wake.notify_one();
  const SignalBlock block;
  try {
    thread_ = std::thread([bench = bench_] { bench->stay(); });
  } catch (const std::system_error& error) {
    bench_.reset();
    no_thread_ = Error(error.code(), std::string("start a thread for files: ") + error.what());
    ::eventfd_write(ready_->get(), 1);
  }
}

void FileWorker::dismiss() {
  if (bench_ == nullptr) return;
  if (bench_->dismiss()) {
    thread_.join();
  } else {
    thread_.detach();
  }
  bench_.reset();
}

std::optional<Error> FileWorker::hung() const {
  const std::lock_guard lock(bench_->mutex);
  const std::string what = bench_->asking.empty() ? "use a file system" : bench_->asking;
  return Error(
      std::make_error_code(std::errc::timed_out),
      what + ": no answer for " + std::to_string(jobs_.front().limit.count() / 1000) + " s");
}

std::optional<FileWorker::Time> FileWorker::next_deadline() const {
  return jobs_.empty() ? std::nullopt : std::optional(deadline_);
}

void FileWorker::deliver(Time now) {
  eventfd_t ignored = 0;
  ::eventfd_read(ready_->get(), &ignored);
  if (jobs_.empty()) return;
  std::optional<Error> failed = std::exchange(no_thread_, std::nullopt);
  if (!failed && !bench_->take_result(failed)) {
    if (now < deadline_) return;
    // Slow is not the same as hung: each step has the whole time.
    if (const int begun = std::max(bench_->steps_begun(), 1); begun != std::exchange(steps_, begun))
      return begin_limit(now);
    if (!std::exchange(second_half_, true)) {
      deadline_ = now + jobs_.front().limit / 2;
      return;
    }
    failed = hung();
    dismiss();
  }
  const Job over = std::move(jobs_.front());
  jobs_.pop_front();
  begin(now);
  over.done(std::move(failed));
}

void FileWorker::wait() {
  while (const auto deadline = next_deadline()) {
    await_ready(ready_->get(), POLLIN, *deadline);
    deliver(std::chrono::steady_clock::now());
  }
}

void remove_folder(const std::string& folder) noexcept {
  const auto remove = [folder] {
    std::error_code ignored;
    return std::filesystem::remove_all(folder, ignored);
  };
  try {
    const auto removed = ask_files<std::uintmax_t>(kRemoveLimit, remove);
    if (removed || removed.error().code() == std::errc::timed_out) return;
  } catch (const std::exception&) {
  }
  remove();  // there is no descriptor or no thread to do it from outside
}

}  // namespace drun
