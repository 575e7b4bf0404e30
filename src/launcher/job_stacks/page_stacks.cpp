#include "launcher/job_stacks/page_stacks.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "launcher/page/http_answer.hpp"

namespace drun::launcher {
namespace {

using Gate = secure::TokenGate;

HttpAnswer with_header(HttpAnswer answer, const std::string& header) {
  answer.headers = header + "\r\n";
  return answer;
}

HttpAnswer who_are_you(std::string_view why) {
  return with_header(plain_answer(401, why), "WWW-Authenticate: Bearer");
}

// Why this request is refused; nullopt: it is not.
std::optional<HttpAnswer> refused(const HttpRequest& request, Gate& gate, Gate::Time now) {
  if (!request.post)
    return with_header(plain_answer(405, "only POST: stacks are taken for it"), "Allow: POST");
  if (!is_own_origin(request.origin, request.host))
    return plain_answer(403, "the page of another place asks for this");
  const auto guess = bearer_of(request.authorization);
  if (!guess)
    return who_are_you(
        "the page's key is needed, which drunctl page-key prints: Authorization: Bearer KEY");
  const Gate::Answer answer = gate.check(*guess, now);
  if (answer == Gate::Answer::Open) return std::nullopt;
  if (answer == Gate::Answer::Wrong) return who_are_you("this is not the page's key");
  const std::string pause = std::to_string(Gate::kEach.count());
  return with_header(plain_answer(429, "too many wrong keys: try again in " + pause + " s"),
                     "Retry-After: " + pause);
}

}  // namespace

PageStacks::PageStacks(asio::io_context& io, const secure::Token& key, bool guessable, Take take)
    : take_(std::move(take)), gate_(key, guessable), limit_(io, [this] {
        ++look_;
        tell_all(plain_answer(503, "the stacks did not come in time"));
      }) {}

void PageStacks::serve(const HttpRequest& request, const PageServer::Answer& answer,
                       std::chrono::steady_clock::time_point now) {
  if (auto refusal = refused(request, gate_, now)) return answer(std::move(*refusal));
  waiting_.push_back(answer);
  if (waiting_.size() > 1) return;
  limit_.set(now + kLimit);
  take_([this, look = ++look_](const Result<std::string>& text) {
    if (look != look_) return;
    if (!text) return tell_all(plain_answer(503, text.error().what()));
    HttpAnswer stacks;
    stacks.body = share(*text);
    tell_all(stacks);
  });
}

void PageStacks::tell_all(const HttpAnswer& answer) {
  limit_.set(std::nullopt);
  // Whoever asks from inside of these begins another look.
  for (const auto& waits : std::exchange(waiting_, {}))
    waits(answer);
}

void PageStacks::cancel() {
  ++look_;
  limit_.set(std::nullopt);
  waiting_.clear();
}

}  // namespace drun::launcher
