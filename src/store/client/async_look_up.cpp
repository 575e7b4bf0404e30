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
  question_->answered.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [question = question_](std::error_code) {
                                   const auto call = std::exchange(question->answer, nullptr);
                                   if (call == nullptr) return;
                                   std::error_code ignored;
                                   question->answered.close(ignored);
                                   call(std::move(*question->look_up->receive()));
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
