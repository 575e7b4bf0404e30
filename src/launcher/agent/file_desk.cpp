#include "launcher/agent/file_desk.hpp"

#include <utility>

#include "base/file_descriptor.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

FileDesk::FileDesk(asio::io_context& io, std::function<void()> served)
    : ready_(io, duplicate(worker_.fd(), "listen to a thread").release()),
      limit_(io),
      served_(std::move(served)) {}

void FileDesk::run(std::chrono::milliseconds limit, std::function<void()> work, Done done) {
  worker_.run(limit, std::move(work), std::move(done));
  if (!std::exchange(waits_, true)) wait();
  arm();
}

void FileDesk::cancel() {
  waits_ = false;
  ready_.cancel();
  limit_.cancel();
}

void FileDesk::wait() {
  ready_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code cancelled) {
    if (cancelled) return;
    serve();
    if (waits_) wait();
  });
}

void FileDesk::arm() {
  const auto deadline = worker_.next_deadline();
  limit_.cancel();
  if (!deadline) return;
  limit_.expires_at(*deadline);
  limit_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) serve();
  });
}

void FileDesk::serve() {
  worker_.deliver(Clock::now());
  arm();
  served_();
}

}  // namespace drun::launcher
