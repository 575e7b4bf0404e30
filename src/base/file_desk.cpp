#include "base/file_desk.hpp"

#include <chrono>
#include <utility>

namespace drun {

FileDesk::FileDesk(asio::io_context& io, std::function<void()> served)
    : ready_(io), limit_(io, [this] { serve(); }), served_(std::move(served)) {}

FileDesk::~FileDesk() {
  if (ready_.is_open()) ready_.release();
}

// If there is no descriptor for it, limit_ tells of what has failed, and the next work tries again.
void FileDesk::listen() {
  if (waits_ || cancelled_) return;
  asio::error_code failed;
  if (!ready_.is_open() && worker_.fd() >= 0) ready_.assign(worker_.fd(), failed);
  waits_ = ready_.is_open();
  if (waits_) wait();
}

void FileDesk::run(std::chrono::milliseconds limit, std::function<void()> work, Done done) {
  worker_.run(limit, std::move(work), std::move(done));
  cancelled_ = false;
  listen();
  limit_.set(worker_.next_deadline());
}

void FileDesk::cancel() {
  waits_ = false;
  cancelled_ = true;
  asio::error_code not_open;
  ready_.cancel(not_open);
  limit_.set(std::nullopt);
}

void FileDesk::wait() {
  ready_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code cancelled) {
    if (cancelled) return;
    serve();
    if (waits_) wait();
  });
}

void FileDesk::serve() {
  worker_.deliver(std::chrono::steady_clock::now());
  listen();
  limit_.set(worker_.next_deadline());
  served_();
}

}  // namespace drun
