#include "launcher/views/job_teller.hpp"

#include <utility>

#include "base/file_worker.hpp"

namespace drun::launcher {

JobTeller::JobTeller(asio::io_context& io, const std::string& run_id)
    : io_(io), watch_(run_id, kWatch), limit_(io, [this] { tell(); }) {}

void JobTeller::ask(Say say) {
  waiting_.push_back(std::move(say));
  if (waiting_.size() == 1) limit_.set(std::chrono::steady_clock::now() + kLimit);
  watch_.begin();
  advance();
}

void JobTeller::cancel() {
  waiting_.clear();
  limit_.set(std::nullopt);
  if (thread_) thread_->cancel();
  watch_.set_link(nullptr);
}

void JobTeller::set_link(rendezvous::KeyValue* link) {
  watch_.set_link(link);
  advance();
}

bool JobTeller::on_event(const rendezvous::KeyValueEvent& event) {
  const bool taken = watch_.on_event(event);
  if (taken) advance();
  return taken;
}

void JobTeller::advance() {
  if (!waiting_.empty() && watch_.settled()) tell();
}

void JobTeller::tell() {
  limit_.set(std::nullopt);
  if (!thread_) thread_.emplace(io_, [] {});
  const auto* known = watch_.documents();
  thread_->ask<std::string>(
      kFilesLimit,
      [documents = known != nullptr ? *known : jobs::Documents()] {
        return jobs::encode(documents);
      },
      [waiting = std::exchange(waiting_, {})](const Result<std::string>& text) {
        for (const Say& say : waiting)
          say(text ? *text : "");
      });
  watch_.end();
}

}  // namespace drun::launcher
