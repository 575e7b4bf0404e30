#include "etcd/etcd_key_value.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "base/addresses.hpp"
#include "base/random_bytes.hpp"
#include "etcd/curl_library.hpp"
#include "etcd/etcd_fsm.hpp"
#include "etcd/http_client.hpp"
#include "store/client/async_look_up.hpp"

namespace drun::etcd {

// The thin shell around the machine: look-ups, calls, the timer and the events.
class EtcdKeyValue::Impl : public std::enable_shared_from_this<Impl> {
 public:
  using Clock = std::chrono::steady_clock;

  Impl(asio::io_context& io, EtcdOptions options, Sink sink)
      : io_(io),
        options_(options),
        fsm_(std::move(options), random_seed()),
        sink_(std::move(sink)),
        timer_(io),
        look_up_(io) {}

  EtcdFsm& fsm() { return fsm_; }
  [[nodiscard]] const EtcdFsm& fsm() const { return fsm_; }
  [[nodiscard]] const HttpEnds& ends() const { return ends_; }

  void open() {
    fsm_.open(Clock::now());
    const auto& library = curl_library();
    if (!library) {
      fsm_.on_unusable(library.error().what());
    } else {
      HttpClient::Calls calls;
      calls.replied = [this](std::uint64_t call, const EtcdReply& reply, const HttpEnds& ends) {
        if (reply.status != 0) ends_ = ends;
        fsm_.on_reply(call, reply, Clock::now());
        pump();
      };
      calls.streamed = [this](std::uint64_t call, std::string_view bytes) {
        fsm_.on_stream(call, bytes, Clock::now());
        pump();
      };
      http_ = std::make_unique<HttpClient>(io_, options_.cluster.tls, std::move(calls));
    }
    schedule();
  }

  void abandon() {
    abandoned_ = true;
    timer_.cancel();
    look_up_.abandon();
    http_.reset();
  }

  // What calls have asked of the machine is done in the next turn of the loop.
  void schedule() {
    if (std::exchange(scheduled_, true)) return;
    asio::post(io_, [self = shared_from_this()] {
      self->scheduled_ = false;
      self->pump();
    });
  }

 private:
  // The sink may end this; what it asks for is done in the next round.
  void pump() {
    const auto self = shared_from_this();
    if (pumping_) return;
    pumping_ = true;
    try {
      while (!abandoned_ && do_round()) {
      }
    } catch (...) {  // the sink: it gets the next event all the same
      pumping_ = false;
      throw;
    }
    pumping_ = false;
    if (!abandoned_) arm_timer();
  }

  // False: nothing is left to be done.
  bool do_round() {
    follow_member();
    place_calls();
    auto events = fsm_.take_events();
    for (auto& event : events) {
      sink_(std::move(event));
      if (abandoned_) return false;
    }
    return !events.empty();
  }

  void follow_member() {
    const auto wanted = fsm_.member();
    if (wanted == member_ || http_ == nullptr) return;
    member_ = wanted;
    server_.reset();
    look_up_.abandon();
    http_->drop();
    if (!member_) return;
    const Endpoint& endpoint = options_.cluster.endpoints[member_->endpoint];
    const auto numeric = numeric_addresses(endpoint.host);
    if (!numeric.empty()) {
      // A name stays a name: the certificate may be for it.
      if (endpoint.host == "localhost") {
        server_ = HttpServer{endpoint, {"127.0.0.1", "::1"}};
      } else {
        server_ = HttpServer{{numeric.front(), endpoint.port}, {}};
      }
      return;
    }
    look_up(endpoint);
  }

  void look_up(const Endpoint& endpoint) {
    look_up_.ask(endpoint,
                 [self = shared_from_this(), endpoint](const Result<store::Addresses>& found) {
                   self->on_looked_up(endpoint, found);
                 });
  }

  void on_looked_up(const Endpoint& endpoint, const Result<store::Addresses>& found) {
    if (!found) {
      fail(store::look_up_failure(endpoint, found.error()));
    } else {
      HttpServer server{endpoint, {}};
      for (const auto& address : *found) {
        auto host = to_endpoint(address).host;
        if (host.find('%') == std::string::npos) server.addresses.push_back(std::move(host));
      }
      if (!server.addresses.empty()) {
        server_ = std::move(server);
      } else {
        fail(store::look_up_failure(endpoint,
                                    Error(std::make_error_code(std::errc::address_not_available),
                                          "its addresses are all of a single link")));
      }
    }
    pump();
  }

  void fail(const Error& unreachable) {
    fsm_.on_unreachable(unreachable.what(), false, Clock::now());
  }

  // Without a server yet, they wait.
  void place_calls() {
    if (http_ == nullptr || !server_) return;
    for (const auto call : fsm_.take_canceled())
      http_->cancel(call);
    for (const auto& call : fsm_.take_calls())
      http_->post(*server_, call, fsm_.token());
  }

  void arm_timer() {
    const auto due = fsm_.next_deadline();
    if (due == armed_) return;
    armed_ = due;
    timer_.cancel();
    if (!due) return;
    timer_.expires_at(*due);
    timer_.async_wait([self = shared_from_this()](std::error_code canceled) {
      if (canceled || self->abandoned_) return;
      self->armed_.reset();
      self->fsm_.on_time(Clock::now());
      self->pump();
    });
  }

  asio::io_context& io_;
  const EtcdOptions options_;
  EtcdFsm fsm_;
  Sink sink_;
  std::unique_ptr<HttpClient> http_;
  asio::steady_timer timer_;
  std::optional<Clock::time_point> armed_;
  std::optional<EtcdFsm::Member> member_;
  std::optional<HttpServer> server_;
  store::AsyncLookUp look_up_;
  HttpEnds ends_;
  bool scheduled_ = false;
  bool pumping_ = false;
  bool abandoned_ = false;
};

EtcdKeyValue::EtcdKeyValue(asio::io_context& io, EtcdOptions options, Sink sink)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(sink))) {}

EtcdKeyValue::~EtcdKeyValue() {
  impl_->abandon();
}

void EtcdKeyValue::open() {
  impl_->open();
}

void EtcdKeyValue::watch(rendezvous::WatchId watch, std::string key, bool prefix) {
  impl_->fsm().watch(watch, std::move(key), prefix, Impl::Clock::now());
  impl_->schedule();
}

void EtcdKeyValue::unwatch(rendezvous::WatchId watch) {
  impl_->fsm().unwatch(watch);
  impl_->schedule();
}

void EtcdKeyValue::commit(rendezvous::RequestId request, rendezvous::Transaction transaction) {
  impl_->fsm().commit(request, std::move(transaction), Impl::Clock::now());
  impl_->schedule();
}

void EtcdKeyValue::close() {
  impl_->fsm().close(Impl::Clock::now());
  impl_->schedule();
}

const std::string& EtcdKeyValue::local_address() const {
  return impl_->ends().local.host;
}

std::optional<EtcdFarewell> EtcdKeyValue::farewell() const {
  EtcdFarewell farewell;
  farewell.bytes = impl_->fsm().farewell();
  const auto address = store::literal_addresses(impl_->ends().remote);
  if (farewell.bytes.empty() || address.empty()) return std::nullopt;
  farewell.address = std::string(address.front().bytes());
  return farewell;
}

const std::string& EtcdKeyValue::last_error() const {
  return impl_->fsm().last_error();
}

}  // namespace drun::etcd
