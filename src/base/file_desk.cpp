#include "base/file_desk.hpp"

#include <chrono>
#include <utility>

#include "base/file_descriptor.hpp"

namespace drun {

FileDesk::FileDesk(asio::io_context& io, std::function<void()> served)
    : ready_(io, duplicate(worker_.fd(), "listen to a thread").release()),
      limit_(io, [this] { serve(); }),
      served_(std::move(served)) {}

void FileDesk::run(std::chrono::milliseconds limit, std::function<void()> work, Done done) {
  worker_.run(limit, std::move(work), std::move(done));
  if (!std::exchange(waits_, true)) wait();
  limit_.set(worker_.next_deadline());
}

void FileDesk::cancel() {
  waits_ = false;
  ready_.cancel();
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
  limit_.set(worker_.next_deadline());
  served_();
}

}  // namespace drun
