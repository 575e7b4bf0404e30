#include "launcher/starter/starter.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/counted.hpp"
#include "base/folded_names.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/starter/made_token.hpp"
#include "launcher/starter/name_lookup.hpp"
#include "secure/tls_context.hpp"
#include "secure/token_source.hpp"

namespace drun::launcher {
namespace {

using Step = hosts::HostRoll::Step;
using std::chrono::milliseconds;

// ssh gives up after ten seconds by itself; a launcher may not.
constexpr std::chrono::seconds kAnswerLimit{60};
// The job has ended on one host. The others end meanwhile, unless that one never took part.
constexpr std::chrono::seconds kHurryAfter{5};
constexpr std::chrono::seconds kOutlastFor{30};
// Beside --shutdown-timeout, for what an agent does after its workers are gone.
constexpr std::chrono::seconds kGraceBeside{10};
// Between tries of a host that the job runs without.
constexpr std::chrono::seconds kFirstPause{2};
constexpr std::chrono::seconds kLongestPause{60};
// Others may fail for the same reason: one line tells of all.
constexpr milliseconds kFoldFor{300};
constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kLongestFailure = 1000;  // bytes of what a host says of itself

std::vector<int> signals_of_starter(const Options& options) {
  std::vector<int> signals = signals_of_agent(options);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    if (!ignored_by_nohup(signal)) signals.push_back(signal);
  return signals;
}

}  // namespace

Starter::Starter(const Options& options, OutputRelay& relay)
    : options_(options),
      plan_(*options.start),
      relay_(relay),
      signals_(io_, signals_of_starter(options)),
      answer_limit_(io_),
      hurry_limit_(io_),
      fold_limit_(io_),
      roll_(plan_.hosts.size(), options.min_nodes),
      shutdown_(io_,
                {[](milliseconds) {}, [this] { return outputs_.progress(); },
                 [this] { outputs_.give_up(); }},
                {[this] { shutdown_.on_swept(); }, [this] { cancel_timers(); },
                 [this] { signals_.cancel(); }}),
      token_(options.token),
      key_door_(io_),
      limbs_(io_, {[this](const hosts::Frame& frame) { on_frame(frame); },
                   [this] { look_whether_over(); }}),
      outputs_(io_, relay_, options.output.timestamps,
               [this](const hosts::Frame& frame) { limbs_.send(frame); }) {}

int Starter::run() {
  for (std::size_t host = 0; host < plan_.hosts.size(); ++host) {
    remotes_.push_back(std::make_unique<Remote>(io_, plan_.hosts[host].name));
    outputs_.add_host();
  }
  relay_.start();
  relay_.log_while(
      [this] {
        signals_.start([this](int signal) { on_signal(signal); });
        await_answers();
        start();
        io_.run();
      },
      [this](std::string_view line) { return outputs_.is_news(line); });
  if (!relay_.finish()) shutdown_.on_output_lost();
  return shutdown_.exit_code();
}

void Starter::start() {
  hosts::Branch branch{plan_.launcher.words, plan_.drun, plan_.fan_out, plan_.copy_self, {}};
  for (std::size_t host = 0; host < remotes_.size(); ++host)
    branch.targets.push_back({static_cast<std::uint32_t>(host), remotes_[host]->name});
  limbs_.start(branch, "");
  if (!roll_.over()) make_token();  // there may be no launcher
}

// While the hosts answer.
void Starter::make_token() {
  if (token_) return;
  token_ = made_token(options_);
  if (!token_) return;
  const auto tls = secure::TlsContext::of(*token_);
  if (tls)
    return key_door_.open(options_.run_id, (*tls)->secret(), [this] { return meeting_.place; });
  log::debug("no token is made for the job: {}", tls.error().what());
  token_.reset();
}

// Since the last answer: the more hosts there are, the longer all take.
void Starter::await_answers() {
  answer_limit_.expires_after(kAnswerLimit);
  answer_limit_.async_wait([this](asio::error_code cancelled) {
    for (std::size_t host = 0; !cancelled && host < remotes_.size(); ++host) {
      if (remotes_[host]->hello || roll_.is_gone(host)) continue;
      limbs_.give_up(static_cast<std::uint32_t>(host));
      fail(host, "no answer within " + std::to_string(kAnswerLimit.count()) + " s");
    }
  });
}

// ---- what comes from the hosts ----

void Starter::on_frame(const hosts::Frame& frame) {
  using enum hosts::FrameType;
  const std::size_t host = frame.host;
  if (host >= remotes_.size()) return;
  switch (frame.type) {
    case Hello:
      return on_hello(host, frame.payload);
    case Failed:
      return fail(host, printable(frame.payload.substr(0, kLongestFailure)));
    case Output:
    case ErrorOutput:
    case Words:
      return outputs_.take(frame);
    case Ended:
      take(roll_.on_ended(host, hosts::unpack_exit_code(frame.payload)));
      break;
    case Copying:  // as good as an answer
      if (!roll_.begun()) await_answers();
      break;
    case Alive:
    case Branch:
    case Order:
    case Signal:
    case Taken:
    case ErrorTaken:
      break;
  }
}

void Starter::on_hello(std::size_t host, const std::string& payload) {
  Remote& remote = *remotes_[host];
  const auto hello = hosts::unpack_hello(payload);
  if (remote.hello || roll_.is_gone(host)) return;
  if (!hello) return fail(host, hello.error().what());
  if (!hello->no_tls.empty() && is_token_needed()) {
    limbs_.give_up(static_cast<std::uint32_t>(host));
    return fail(host, printable(hello->no_tls));
  }
  remote.hello = *hello;
  if (!roll_.begun()) await_answers();
  const Step step = roll_.on_ready(host);
  if (step != Step::Join) return take(step);
  remote.failure.clear();
  log::info("{}: started again", remote.name);
  order(host);
}

void Starter::fail(std::size_t host, const std::string& why) {
  if (roll_.is_gone(host) || roll_.over()) return;
  Remote& remote = *remotes_[host];
  if (std::exchange(remote.failure, why) != why) {
    if (!failed_.any()) say_failures_soon();
    failed_.add(remote.name, why);
  }
  take(roll_.on_failed(host));
  try_again_later(host);
}

void Starter::say_failures_soon() {
  fold_limit_.expires_after(kFoldFor);
  fold_limit_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) say_failures();
  });
}

// Before what follows from them.
void Starter::say_failures() {
  for (const std::string& line : failed_.take(kMostNamed))
    log::error("{}", line);
}

// While the job runs without it.
void Starter::try_again_later(std::size_t host) {
  if (!roll_.may_return(host)) return;
  Remote& remote = *remotes_[host];
  remote.pause = std::clamp(remote.pause * 2, kFirstPause, kLongestPause);
  remote.retry.expires_after(remote.pause);
  remote.retry.async_wait([this, host](asio::error_code cancelled) {
    if (cancelled || !roll_.may_return(host)) return;
    Remote& again = *remotes_[host];
    again.hello.reset();
    roll_.on_retry(host);
    limbs_.start_again({static_cast<std::uint32_t>(host), again.name});
  });
}

// ---- what follows ----

void Starter::take(Step step) {
  switch (step) {
    case Step::None:
    case Step::Join:
      break;
    case Step::Begin:
      begin();
      break;
    case Step::GiveUp:
      give_up();
      break;
    case Step::Hurry:
      hurry(kHurryAfter);
      break;
    case Step::Outlast:
      hurry(kOutlastFor);
      break;
    case Step::StopOthers:
      say_failures();
      log::error("stopping the job: too few hosts are left");
      stop_agents(SIGTERM);
      break;
  }
  look_whether_over();
}

// The user has given it, or others have it already.
bool Starter::is_token_needed() const {
  const std::string& file = options_.token_file;  // of each host
  return (token_ && (options_.token || roll_.begun())) || options_.certificate.any() ||
         (!file.empty() && file != secure::kNoTokenFile);
}

// One that was made is none that the user counts on.
void Starter::drop_token_that_one_cannot_use() {
  for (std::size_t host = 0; host < remotes_.size(); ++host) {
    const auto& remote = remotes_[host];
    if (!token_ || options_.token || roll_.is_gone(host)) continue;
    if (!remote->hello || remote->hello->no_tls.empty()) continue;
    log::info("no token is made for the job: {}: {}", remote->name,
              printable(remote->hello->no_tls));
    token_.reset();
    key_door_.close();
  }
}

void Starter::begin() {
  answer_limit_.cancel();
  say_failures();
  drop_token_that_one_cannot_use();
  nothing_started_.clear();
  std::vector<std::string_view> names;
  for (std::size_t host = 0; host < remotes_.size(); ++host) {
    const Remote& remote = *remotes_[host];
    if (roll_.is_gone(host)) continue;
    if (names.empty() && plan_.meet_at_first)
      meeting_ = {hosts::meeting_place_at(remote.name, *remote.hello, leads_others), host};
    names.push_back(remote.name);
    order(host);
  }
  log::info("started on {}: {}{}", counted(names.size(), "host"), folded_names(names, kMostNamed),
            meeting_.place.empty() ? "" : ", meeting at " + meeting_.place);
  for (std::size_t host = 0; host < remotes_.size(); ++host)
    try_again_later(host);  // those that were missing
}

void Starter::order(std::size_t host) {
  const auto grace = options_.shutdown_timeout + milliseconds(kGraceBeside);
  std::vector<std::string> environment = plan_.environment;
  if (token_)
    environment.push_back(
        token_->handed_over(options_.token ? secure::kTokenVariable : secure::kMadeTokenVariable));
  hosts::Order made{plan_.directory, std::to_string(grace.count()),
                    hosts::agent_command(plan_, host, meeting_), std::move(environment)};
  hosts::Frame frame{hosts::FrameType::Order, static_cast<std::uint32_t>(host), pack(made)};
  limbs_.send(std::move(frame));
  if (token_) secure::wipe(made.environment.back());
}

void Starter::give_up() {
  answer_limit_.cancel();
  say_failures();
  if (shutdown_.signal() == 0) {
    nothing_started_ =
        "nothing was started: the job needs " +
        (options_.min_nodes == 1 ? "a host" : std::to_string(options_.min_nodes) + " hosts");
    log::error("{}", nothing_started_);
  }
  limbs_.close();
}

void Starter::hurry(std::chrono::seconds after) {
  hurry_limit_.expires_after(after);
  hurry_limit_.async_wait([this](asio::error_code cancelled) {
    if (cancelled || roll_.over()) return;
    log::debug("the job has ended, and not on all hosts: stopping those");
    stop_agents(SIGTERM);
  });
}

void Starter::stop_agents(int signal) {
  for (std::size_t host = 0; host < remotes_.size(); ++host)
    if (!roll_.is_gone(host)) tell_agent(host, signal);
}

void Starter::tell_agent(std::size_t host, int signal) {
  limbs_.send({hosts::FrameType::Signal, static_cast<std::uint32_t>(host), std::to_string(signal)});
}

// One agent asks the others.
void Starter::show_stacks(int signal) {
  for (std::size_t host = 0; host < remotes_.size(); ++host)
    if (!roll_.is_gone(host)) return tell_agent(host, signal);
}

void Starter::look_whether_over() {
  if (!roll_.over()) return;
  say_failures();
  limbs_.close();  // what was tried again
  if (!limbs_.idle()) return;
  shutdown_.on_outcome(roll_.exit_code());
}

void Starter::cancel_timers() {
  hurry_limit_.cancel();
  fold_limit_.cancel();
  answer_limit_.cancel();
  key_door_.close();
  for (const auto& remote : remotes_)
    remote->retry.cancel();
}

// ---- signals ----

void Starter::on_signal(int signal) {
  switch (meaning_of(signal, options_, shutdown_.asked_to_stop())) {
    case SignalMeaning::Suspend:
      log::warning("a job on other hosts cannot be suspended");
      break;
    case SignalMeaning::Resize:
      break;
    case SignalMeaning::Forward:
      stop_agents(signal);
      break;
    case SignalMeaning::Stacks:
      show_stacks(signal);
      break;
    case SignalMeaning::Stop:
      on_stop(signal);
      break;
  }
}

// What a request means each agent decides itself, by the same rules.
void Starter::on_stop(int signal) {
  if (shutdown_.on_stop_signal(signal) == StopLevel::Force) {
    log::warning("received {} again: cutting the hosts off", process::signal_name(signal));
    limbs_.kill();
    for (std::size_t host = 0; host < remotes_.size(); ++host)
      take(roll_.on_failed(host));
    return;
  }
  stop_agents(signal);
  take(roll_.on_stop(signal));
}

}  // namespace drun::launcher
