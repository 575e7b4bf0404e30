#include "launcher/watch/timer_watch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/buffer.hpp>

#include "base/pipe.hpp"

namespace drun::launcher {
namespace {

// The system's clock may be set meanwhile.
constexpr double kLongestWait = 1;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TimerWatch::TimerWatch(asio::io_context& io, std::function<bool()> running, OnExpired on_expired)
    : running_(std::move(running)),
      on_expired_(std::move(on_expired)),
      in_(io),
      timer_(io, [this] { look(); }) {
  Pipe pipe = make_pipe("make the pipe of torch's timers", O_NONBLOCK);
  in_.assign(pipe.read.release());
  out_ = std::move(pipe.write);
  path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(out_.get());
  read();
}

void TimerWatch::read() {
  in_.async_read_some(asio::buffer(buffer_), [this](asio::error_code failed, std::size_t size) {
    if (failed) return;
    timers_.take({buffer_.data(), size});
    look();
    read();
  });
}

void TimerWatch::look() {
  if (!running_()) timers_.clear();
  for (const auto& expired : timers_.take_expired(unix_time()))
    on_expired_(expired);
  const auto next = timers_.next();
  if (!next) return timer_.set(std::nullopt);
  const double wait = std::clamp(*next - unix_time(), 0.0, kLongestWait);
  timer_.set(std::chrono::steady_clock::now() +
             std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(wait)));
}

void TimerWatch::cancel() {
  timer_.set(std::nullopt);
  asio::error_code ignored;
  in_.cancel(ignored);
}

}  // namespace drun::launcher
