// The agent's FileWorker in its event loop.
#pragma once

#include <functional>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_worker.hpp"

namespace drun {

// Works in the thread that runs `io`.
class FileDesk final : public FileWork {
 public:
  // `served` is called from the loop after each answer, and after each that did not come in time.
  FileDesk(asio::io_context& io, std::function<void()> served);
  FileDesk(const FileDesk&) = delete;
  FileDesk& operator=(const FileDesk&) = delete;
  ~FileDesk() override;

  void run(std::chrono::milliseconds limit, std::function<void()> work, Done done) override;
  // Nobody is told anything any more.
  void cancel();
  // As FileWorker's; for after the loop.
  void wait_for_all() { worker_.wait(); }

 private:
  void listen();
  void wait();
  void serve();

  FileWorker worker_;
  asio::posix::stream_descriptor ready_;  // the worker's
  DeadlineTimer limit_;
  const std::function<void()> served_;
  bool waits_ = false;
  bool cancelled_ = false;
};

}  // namespace drun
