#include "launcher/services/node_exchange.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "base/log.hpp"
#include "drun/store/async_client.hpp"
#include "launcher/services/exchange_fsm.hpp"
#include "launcher/services/exchange_keys.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectLimit{30};
// The others' ranks may come to an exchange much later than this node's.
constexpr std::chrono::hours kPatience{24};
constexpr std::chrono::seconds kRetryAfter{1};

}  // namespace

class NodeExchange::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, const rendezvous::Assignment& assignment, std::string kind,
       std::string purpose)
      : io_(io),
        place_(rendezvous::store_of(assignment)),
        keys_{std::move(kind), assignment.group_rank, assignment.group_world_size},
        purpose_(std::move(purpose)),
        fsm_(assignment.group_world_size),
        retry_(io) {}

  void begin(int number, std::string text, Done done) {
    const Step step = fsm_.begin(connected());
    if (step == Step::None) return;  // the one that goes on keeps its number and its caller
    number_ = number;
    text_ = std::move(text);
    done_ = std::move(done);
    perform(step);
  }

 private:
  using Step = ExchangeFsm::Step;

  [[nodiscard]] bool connected() const { return store_ && store_->connected(); }

  // `error`: what a pause is for.
  void perform(Step step, const Error& error = {}) {
    switch (step) {
      case Step::None:
        return;
      case Step::Answer:
        return asio::post(io_, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->done_({self->text_});
        });
      case Step::Connect:
        return connect();
      case Step::TellAndHear:
        return tell_and_hear();
      case Step::WarnAndPause:
        log::warning("{}: the workers' store: {}; trying again", purpose_, error.what());
        return pause();
      case Step::Pause:
        return pause();
      case Step::Deliver:
        return;  // by who has the texts
    }
  }

  void connect() {
    store_.emplace(io_, place_);
    store_->connect(Clock::now() + kConnectLimit, [this](const Status& connected) {
      perform(fsm_.on_connected(bool(connected)), connected ? Error() : connected.error());
    });
  }

  void tell_and_hear() {
    store_->set(keys_.own(number_), text_, nullptr);
    if (const auto done_with = keys_.done_with(number_)) store_->delete_key(*done_with, nullptr);
    store_->multi_get(
        keys_.all(number_),
        [this](const Result<std::vector<std::string>>& texts) {
          const Step step = fsm_.on_texts(bool(texts));
          if (step != Step::Deliver) return perform(step, texts.error());
          // It may end this object.
          const auto keep = shared_from_this();
          done_(*texts);
        },
        kPatience);
  }

  void pause() {
    retry_.expires_after(kRetryAfter);
    retry_.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
      const auto self = weak.lock();
      if (!cancelled && self) self->perform(self->fsm_.on_pause_over(self->connected()));
    });
  }

  asio::io_context& io_;
  const Endpoint place_;
  const ExchangeKeys keys_;
  const std::string purpose_;
  ExchangeFsm fsm_;
  asio::steady_timer retry_;
  std::optional<store::AsyncClient> store_;
  int number_ = 0;
  std::string text_;
  Done done_;
};

NodeExchange::NodeExchange(asio::io_context& io, const rendezvous::Assignment& assignment,
                           std::string kind, std::string purpose)
    : impl_(std::make_shared<Impl>(io, assignment, std::move(kind), std::move(purpose))) {}

NodeExchange::~NodeExchange() = default;

void NodeExchange::begin(int number, std::string text, Done done) {
  impl_->begin(number, std::move(text), std::move(done));
}

}  // namespace drun::launcher
