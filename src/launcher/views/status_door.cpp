#include "launcher/views/status_door.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include "base/log.hpp"
#include "status/agent_socket.hpp"

namespace drun::launcher {
namespace {

using asio::local::stream_protocol;

// For a caller to take what it has asked for.
constexpr std::chrono::seconds kSayLimit{30};
constexpr std::size_t kMostCallers = 32;  // that wait for a longer answer

}  // namespace

// Lives as long as somebody still has an answer for it.
struct StatusDoor::Caller : std::enable_shared_from_this<Caller> {
  explicit Caller(stream_protocol::socket connection)
      : socket(std::move(connection)), limit(socket.get_executor()) {}

  void say(const std::string& answer) {
    text = answer;
    limit.expires_after(kSayLimit);
    limit.async_wait([self = shared_from_this()](asio::error_code cancelled) {
      if (!cancelled) self->leave();
    });
    asio::async_write(
        socket, asio::buffer(text),
        [self = shared_from_this()](asio::error_code, std::size_t) { self->leave(); });
  }
  void leave() {
    asio::error_code ignored;
    (void)socket.close(ignored);
    limit.cancel();
  }

  stream_protocol::socket socket;
  asio::steady_timer limit;
  std::string text;
};

StatusDoor::StatusDoor(asio::io_context& io, std::string job, Answers answers)
    : door_(io), job_(std::move(job)), answers_(std::move(answers)) {}

void StatusDoor::open() {
  const auto error =
      door_.open(status::new_socket_name(::geteuid(), job_),
                 [this](stream_protocol::socket caller) { serve(std::move(caller)); });
  if (error) log::debug("no socket for drunctl health: {}", error.message());
}

void StatusDoor::close() {
  door_.close();
  for (const auto& caller : callers_)
    if (const auto waiting = caller.lock()) waiting->leave();
}

void StatusDoor::serve(stream_protocol::socket caller) {
  if (!status::may_ask(::geteuid(), status::user_at(caller.native_handle()))) return;
  const auto stacks = [this](bool whole_job, bool unwind) {
    return
        [this, whole_job, unwind](Say say) { answers_.stacks(whole_job, unwind, std::move(say)); };
  };
  switch (status::question_of(caller.native_handle())) {
    case status::Question::Stacks:
      return serve_later(std::move(caller), stacks(false, true));
    case status::Question::QuickStacks:
      return serve_later(std::move(caller), stacks(false, false));
    case status::Question::JobStacks:
      return serve_later(std::move(caller), stacks(true, true));
    case status::Question::QuickJobStacks:
      return serve_later(std::move(caller), stacks(true, false));
    case status::Question::Job:
      return serve_later(std::move(caller), answers_.job);
    case status::Question::Usage:
      return serve_later(std::move(caller), answers_.usage);
    case status::Question::Status:
      break;
  }
  // It is short, so an empty buffer takes it whole.
  const std::string text = to_json(answers_.status()) + "\n";
  (void)::send(caller.native_handle(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void StatusDoor::serve_later(stream_protocol::socket caller,
                             const std::function<void(Say say)>& ask) {
  std::erase_if(callers_, [](const auto& each) { return each.expired(); });
  if (callers_.size() >= kMostCallers) return;
  auto waiting = std::make_shared<Caller>(std::move(caller));
  callers_.push_back(waiting);
  ask([waiting](const std::string& text) { waiting->say(text); });
}

}  // namespace drun::launcher
