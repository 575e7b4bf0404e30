#include "launcher/views/status_page.hpp"

#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenTries{1'000};  // of the local agents, for one port
constexpr std::chrono::milliseconds kForRemoval{2'000};

}  // namespace

StatusPage::StatusPage(asio::io_context& io, const Options& options, const std::string& host_name,
                       std::function<status::AgentStatus()> own, const EventMemory& events,
                       PageStacks::Take stacks)
    : options_(options),
      server_(io, host_name,
              [this](const HttpRequest& request, const PageServer::Answer& answer) {
                serve(request, answer);
              }),
      desk_(io, [this] { arm_timer(); }),
      timer_(io, [this] { on_time(); }),
      answers_({desk_, events, std::move(own), [] { return Clock::now(); }, options.run_id,
                options.tls != nullptr}) {
  if (options.tls == nullptr) return;
  key_.emplace(secure::Token::from(options.tls->page_key()).value());
  stacks_.emplace(io, *key_, options.token && !options.token->is_long(), std::move(stacks));
}

StatusPage::~StatusPage() {
  close();
  if (!listens_ || options_.status_socket.empty()) return;
  (void)ask_files<bool>(kForRemoval, [path = options_.status_socket] {
    about_to("remove " + path);
    remove_socket(path);
    return true;
  });
}

void StatusPage::open() {
  const bool any_port = options_.status_endpoint && options_.status_endpoint->port == 0;
  if (options_.local_node <= 0) return try_to_listen();
  // One of the agents on this machine has the place; if that one goes, another takes it.
  if (any_port) return;
  listen_again_ = Clock::now() + kBetweenTries;
  arm_timer();
}

void StatusPage::tell_end(const rendezvous::Outcome& outcome) {
  answers_.tell_end(outcome);
  arm_timer();
}

void StatusPage::close() {
  closed_ = true;
  server_.close();
  desk_.cancel();
  if (stacks_) stacks_->cancel();
  timer_.set(std::nullopt);
  answers_.close();
}

void StatusPage::try_to_listen() {
  std::function<Result<PageSockets>()> work;
  if (options_.status_endpoint) {
    work = [address = *options_.status_endpoint] { return listen_at(address); };
  } else {
    work = [path = options_.status_socket] {
      about_to("listen at " + path);
      return listen_at(path);
    };
  }
  desk_.ask<Result<PageSockets>>(
      kFilesLimit, std::move(work), [this](Result<Result<PageSockets>> answer) {
        on_listening(answer ? std::move(*answer) : Result<PageSockets>(answer.error()));
      });
}

void StatusPage::on_listening(Result<PageSockets> sockets) {
  if (closed_) return;
  if (!sockets) {
    if (options_.local_node < 0 || sockets.error().code() != std::errc::address_in_use)
      return log::warning(
          "--status-listen: cannot {}; the job runs without a status page: "
          "give another port, or an address of this machine",
          sockets.error().what());
    listen_again_ = Clock::now() + kBetweenTries;
    return arm_timer();
  }
  listens_ = true;
  log::info("the job's status is at {}", sockets->place);
  if (stacks_ && !options_.token_is_made && options_.status_endpoint &&
      !is_loopback_address(options_.status_endpoint->host))
    log::warning(
        "--status-listen {}: who can read the network reads a key that is sent there; "
        "safe is a PORT alone, and ssh -L to it",
        to_string(*options_.status_endpoint));
  server_.listen(std::move(sockets->sockets));
}

void StatusPage::set_link(rendezvous::KeyValue* link) {
  answers_.set_link(link);
  arm_timer();
}

bool StatusPage::on_event(const rendezvous::KeyValueEvent& event) {
  const bool taken = answers_.on_event(event);
  if (taken) arm_timer();
  return taken;
}

void StatusPage::serve(const HttpRequest& request, const PageServer::Answer& answer) {
  if (stacks_ && request.path == PageStacks::kPath)
    return stacks_->serve(request, answer, Clock::now());
  answers_.serve(request, answer);
  arm_timer();
}

void StatusPage::on_time() {
  if (listen_again_ && Clock::now() >= *listen_again_) {
    listen_again_.reset();
    try_to_listen();
  }
  answers_.on_time();
  arm_timer();
}

void StatusPage::arm_timer() {
  if (closed_) return;
  EarliestDeadline due;
  due.include(listen_again_);
  due.include(answers_.next_deadline());
  timer_.set(due.time());
}

}  // namespace drun::launcher
