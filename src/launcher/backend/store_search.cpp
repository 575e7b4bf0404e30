#include "launcher/backend/store_search.hpp"

#include <utility>
#include <variant>

#include "base/log.hpp"
#include "launcher/backend/backend_settings.hpp"

namespace drun::launcher {

StoreSearch::StoreSearch(const Options& options, StoreStanding& standing, SuccessorStore& own_store,
                         Calls calls)
    : options_(options), standing_(standing), own_store_(own_store), calls_(std::move(calls)) {
  if (successors(options) > 0) begin_at(options.endpoint);
}

void StoreSearch::begin_at(const Endpoint& store) {
  fsm_.emplace(succession_limits(options_), store);
}

// A node without such a port takes part, but no store begins there.
void StoreSearch::join(std::optional<std::size_t> listed, NodeIdentity& identity) {
  if (!fsm_) return;
  listed_ = listed.has_value();
  if (listed) {
    identity.listed = static_cast<int>(*listed);
  } else if (const auto held = own_store_.hold(identity.address); !held) {
    log::warning("{}; this node cannot succeed the one with the store", held.error().what());
  }
  identity.successor_port = own_store_.port();
}

void StoreSearch::vote(const rendezvous::Vote& vote,
                       const std::vector<rendezvous::Successor>& successors) {
  if (fsm_) fsm_->set_plan(standing_.on_vote(vote, successors));
}

void StoreSearch::leave() {
  if (fsm_) fsm_->leave();
}

SuccessionStep StoreSearch::on_link(const rendezvous::LinkEvent& event, bool joined) {
  using enum rendezvous::Link;
  if (!fsm_) return {};
  if (event.link == Up || event.link == NewSession) {
    const bool found = fsm_->is_searching();
    fsm_->on_link_up();
    if (found)
      log::info("the store is now at {}{}", to_string(fsm_->store()),
                event.hosting ? ", on this node" : "");
  }
  if (event.link == Closed || event.link == Failed) fsm_->leave();
  if (event.link != Down || !joined) return {};
  return fsm_->on_link_down({link_->was_refused(), link_->is_resting(), event.silent,
                             link_->last_error(), link_->moved(), link_->was_early()},
                            Clock::now());
}

void StoreSearch::follow(const SuccessionStep& step) {
  std::visit([this](const auto& each) { perform(each); }, step);
  calls_.changed();
}

void StoreSearch::on_answer(const Endpoint& endpoint, const store::Whereabouts& answer) {
  const auto place = standing_.later_store(answer, endpoint);
  if (place && fsm_) follow(fsm_->on_found(*place, Clock::now()));
}

void StoreSearch::on_time(const std::string& cause) {
  if (fsm_) follow(fsm_->on_time(cause, Clock::now()));
}

void StoreSearch::point_to_store() {
  const Endpoint place = link_->store_endpoint();
  const store::StoreNews news{static_cast<std::uint64_t>(standing_.generation()), place.port,
                              place.host};
  if (own_store_.stands() && news == pointed_to_) return;
  pointed_to_ = news;
  const auto stands = own_store_.point_to(news.generation, place, server_options(options_, true));
  if (!stands) log::warning("{}; nobody finds the job there", stands.error().what());
}

std::optional<StoreSearch::Time> StoreSearch::next_deadline() const {
  return fsm_ ? fsm_->next_deadline() : std::nullopt;
}

void StoreSearch::perform(const Visit& step) {
  // Others who come to the endpoint of a list wait there. If it serves them, this agent is told.
  pointed_to_ = {};
  if (!listed_)
    own_store_.step_down();
  else if (!own_store_.wait_again())
    (void)own_store_.stand(server_options(options_, true));
  move_to(step.endpoint);
}

void StoreSearch::perform(Stand) {
  pointed_to_ = {};
  if (listed_ && own_store_.wait_again()) return move_to(own_store_.own());
  const auto own = own_store_.stand(server_options(options_, true));
  if (own) return move_to(*own);
  log::warning("{}", own.error().what());
  follow(fsm_->on_stand_failed(Clock::now()));
}

void StoreSearch::perform(const GiveUpSearch& step) {
  standing_.on_lost();
  own_store_.step_down();
  calls_.lost(step.text);
}

void StoreSearch::move_to(const Endpoint& endpoint) {
  standing_.on_moved(endpoint);
  link_->go_to(endpoint);
  calls_.moved();
}

}  // namespace drun::launcher
