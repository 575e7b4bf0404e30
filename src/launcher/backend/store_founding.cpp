#include "launcher/backend/store_founding.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "launcher/backend/backend_settings.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kLookUpAgain{2};

}  // namespace

StoreFounding::StoreFounding(asio::io_context& io, const Options& options,
                             SuccessorStore& own_store, BackendDiscovery::StartLookUp start_look_up,
                             Calls calls)
    : io_(io),
      options_(options),
      own_store_(own_store),
      start_look_up_(std::move(start_look_up)),
      calls_(std::move(calls)) {}

void StoreFounding::start() {
  fsm_.emplace(options_.endpoints);
  const std::size_t all = options_.endpoints.size();
  look_ups_.resize(all);
  for (auto& each : look_ups_)
    each = std::make_unique<BackendDiscovery>(io_, start_look_up_);
  own_endpoints_.emplace(all, kLookUpAgain);
  follow(own_endpoints_->start(Clock::now()));
}

void StoreFounding::end() {
  for (const auto& each : look_ups_)
    each->abandon();
  fsm_.reset();
  own_endpoints_.reset();
}

std::optional<StoreFounding::Time> StoreFounding::next_deadline() const {
  EarliestDeadline due;
  if (fsm_) due.include(fsm_->next_deadline());
  if (own_endpoints_) due.include(own_endpoints_->next_deadline());
  return due.time();
}

void StoreFounding::on_time() {
  if (fsm_) go(fsm_->on_time(Clock::now()));
  if (own_endpoints_) follow(own_endpoints_->on_time(Clock::now()));
}

void StoreFounding::on_answer(const Endpoint& endpoint, const store::Whereabouts& answer) {
  if (!fsm_) return;
  const auto& all = options_.endpoints;
  const auto asked = std::find(all.begin(), all.end(), endpoint);
  go(fsm_->on_answer(static_cast<std::size_t>(asked - all.begin()), answer, Clock::now()));
}

void StoreFounding::on_turned_away(const std::optional<Endpoint>& moved) {
  if (fsm_) go(fsm_->on_turned_away(moved, Clock::now()));
}

void StoreFounding::follow(const OwnEndpointFsm::Step& step) {
  if (step.begin) begin();
  for (const std::size_t each : step.look_up)
    look_up(each);
}

void StoreFounding::look_up(std::size_t endpoint) {
  look_ups_[endpoint]->ask(options_.endpoints[endpoint], [this, endpoint](const Result<bool>& own) {
    if (!own_endpoints_) return;
    using Own = OwnEndpointFsm::Own;
    const Own whose = !own ? Own::Unknown : *own ? Own::Yes : Own::No;
    follow(own_endpoints_->on_answer(endpoint, whose, Clock::now()));
    calls_.changed();
  });
}

void StoreFounding::begin() {
  calls_.drop_link();
  wait_at_own_endpoint();
  auto options = control_options(options_, false, options_.endpoint, {});
  if (listed_) options.founder = founders(options_, listed_);
  calls_.make_link(std::move(options));
  fsm_->start(Clock::now());
  calls_.begun();
}

// For the others, if one of the endpoints is its own.
void StoreFounding::wait_at_own_endpoint() {
  own_store_.end();
  listed_.reset();
  std::string why_not;
  for (std::size_t i = 0; i < options_.endpoints.size() && !listed_; ++i) {
    if (!own_endpoints_->is_own(i) || options_.conf.is_host == false) continue;
    auto held = own_store_.hold(options_.endpoints[i]);
    auto options = server_options(options_, true);
    options.founding = true;
    if (held && own_store_.stand(options).ok())
      listed_ = i;
    else if (!held)
      why_not = held.error().what();
  }
  if (listed_) own_endpoints_->on_listed();
  if (!listed_ && own_endpoints_->has_all_answers() && !why_not.empty())
    log::info("{}; this node's agent begins no store", why_not);
}

void StoreFounding::go(const FoundingFsm::Step& step) {
  if (step) calls_.go_to(*step, fsm_->founds());
  calls_.changed();
}

}  // namespace drun::launcher
