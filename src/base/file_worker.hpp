// A thread for what asks a file system something: make a folder, open a file, look whether a
// program is there. A network file system whose server is gone gives no answer, and the wait cannot
// be interrupted. So code that has to go on (renew a lease, obey a signal) asks here.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"

namespace drun {

// How long a file system may take to answer. Shorter than a file server's usual fail-over, because
// nobody would watch for longer.
inline constexpr std::chrono::milliseconds kFilesLimit{30'000};

// What the work of a FileWorker asks for next: "create folder /nfs/logs". The error says it if
// there is no answer. Anywhere else it does nothing.
void about_to(std::string what);

class FileWork {
 public:
  FileWork() = default;
  FileWork(const FileWork&) = delete;
  FileWork& operator=(const FileWork&) = delete;
  virtual ~FileWork() = default;

  // `work` is done in another thread, after all that was asked for before. Then `done` gets what it
  // returned or threw, or, when a step of it took longer than `limit`, an error with the code
  // timed_out ("create folder /nfs/logs: no answer for 30 s"); a step ends with about_to(), and is
  // given up after one and a half limits at the latest. Work that hangs is left behind, so all that
  // it uses must be its own.
  template <typename T>
  void ask(std::chrono::milliseconds limit, std::function<T()> work,
           std::function<void(Result<T>)> done) {
    auto answer = std::make_shared<std::optional<T>>();
    run(
        limit, [answer, work = std::move(work)] { answer->emplace(work()); },
        [answer, done = std::move(done)](std::optional<Error> failed) {
          done(failed ? Result<T>(std::move(*failed)) : Result<T>(std::move(**answer)));
        });
  }

  // The same for work that returns nothing; `done` gets what it threw.
  using Done = std::function<void(std::optional<Error>)>;
  virtual void run(std::chrono::milliseconds limit, std::function<void()> work, Done done) = 0;

 protected:
  // Does it here and now; what it threw.
  static std::optional<Error> attempt(const std::function<void()>& work);
};

// One thread uses it. The other one is started for the first work.
class FileWorker final : public FileWork {
 public:
  using Time = std::chrono::steady_clock::time_point;

  FileWorker();
  // Waits for nothing: work that is not done is left behind or never begun. A thread without work
  // is gone afterwards.
  ~FileWorker() override;

  // Readable when deliver() has something. -1: there is no descriptor; then what is asked for fails
  // at next_deadline(), and each run() tries to get one. It stays the same from then on.
  [[nodiscard]] int fd() const { return ready_->get(); }
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // Calls `done` for the work that is over, or has hung for its limit.
  void deliver(Time now);
  // Until all that was asked for is over, or has hung.
  void wait();

  void run(std::chrono::milliseconds limit, std::function<void()> work, Done done) override;

 private:
  friend void about_to(std::string what);

  struct Bench;  // what the two threads share
  struct Job {
    std::chrono::milliseconds limit{};
    std::function<void()> work;
    Done done;
  };

  void begin(Time now);
  void begin_limit(Time now);
  void dismiss();
  [[nodiscard]] std::optional<Error> hung() const;

  const std::shared_ptr<FileDescriptor> ready_;  // eventfd
  std::shared_ptr<Bench> bench_;                 // null: there is no thread
  std::thread thread_;
  std::deque<Job> jobs_;  // the first one is at work
  Time deadline_{};
  bool second_half_ = false;
  int steps_ = 0;                   // of the first job, when last looked at
  std::optional<Error> no_thread_;  // why there is none for the first job
};

// As FileWork::ask(), for a program that has nothing else to do: it waits here, and a signal does
// what it would do without. Unless the work hangs no thread is left.
template <typename T>
[[nodiscard]] Result<T> ask_files(std::chrono::milliseconds limit, std::function<T()> work) {
  std::optional<Result<T>> answer;
  FileWorker worker;
  worker.ask<T>(limit, std::move(work), [&](Result<T> result) { answer = std::move(result); });
  worker.wait();
  return std::move(*answer);
}

// Removes the folder with all that it holds; says nothing if that fails. Waits for a file system
// that hangs for some seconds at most: then a thread of this process hangs there, and another
// process that uses the folder may not even be killed before this one has ended.
void remove_folder(const std::string& folder) noexcept;

}  // namespace drun
