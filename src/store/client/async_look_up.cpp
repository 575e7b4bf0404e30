#include "store/client/async_look_up.hpp"

#include <system_error>
#include <utility>

#include <asio/posix/stream_descriptor.hpp>

#include "base/file_descriptor.hpp"

namespace drun::store {

struct AsyncLookUp::Question {
  LookUp look_up;
  asio::posix::stream_descriptor answered;
  Answer answer;  // null: abandoned
};

AsyncLookUp::AsyncLookUp(asio::io_context& io, Start start) : io_(io), start_(std::move(start)) {}

AsyncLookUp::~AsyncLookUp() {
  abandon();
}

void AsyncLookUp::ask(const Endpoint& endpoint, Answer answer) {
  abandon();
  LookUp look_up = start_(endpoint);
  const int fd = duplicate(look_up->fd(), "look up a name").release();
  question_ = std::make_shared<Question>(
      Question{std::move(look_up), asio::posix::stream_descriptor(io_, fd), std::move(answer)});
  wait(question_);
}

// It may be told so too early: Asio uses what it keeps for a descriptor again at once, so an answer
// that came for an abandoned question in the same turn wakes this one.
void AsyncLookUp::wait(const std::shared_ptr<Question>& question) {
  question->answered.async_wait(asio::posix::stream_descriptor::wait_read,
                                [question](std::error_code) {
                                  if (question->answer == nullptr) return;
                                  const auto found = question->look_up->receive();
                                  if (found == nullptr) return wait(question);
                                  std::error_code ignored;
                                  question->answered.close(ignored);
                                  std::exchange(question->answer, nullptr)(std::move(*found));
                                });
}

void AsyncLookUp::abandon() {
  if (question_ == nullptr) return;
  question_->answer = nullptr;
  std::error_code ignored;
  question_->answered.close(ignored);
  question_.reset();
}

}  // namespace drun::store
