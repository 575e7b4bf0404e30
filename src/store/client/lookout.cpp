#include "store/client/lookout.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "store/client/resolve.hpp"
#include "store/client/stream_connection.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

// A name server may take its time, and an attempt that ends too early never comes to an end.
constexpr std::chrono::seconds kLookUpTime{5};

}  // namespace

class Lookout::Inquiry final : public StreamConnection {
 public:
  using Told = std::function<void(const Whereabouts&)>;

  Inquiry(asio::io_context& io, Endpoint endpoint, InquiryFsm::Options options, Told told)
      : StreamConnection(io, options.tls),
        fsm_(std::move(options)),
        endpoint_(std::move(endpoint)),
        told_(std::move(told)) {}

  InquiryFsm& fsm() { return fsm_; }

 private:
  bool do_round() override {
    const auto wanted = fsm_.wanted_connection();
    if (wanted != connection_) {
      connection_ = wanted;
      stop_dialing();
      close();
      outgoing_.clear();
      if (wanted) dial(endpoint_);
    }
    flush();
    if (fsm_.answer() == said_) return false;
    said_ = fsm_.answer();
    told_(Whereabouts(said_));
    return true;
  }

  void on_dialed(Result<FileDescriptor> socket) override {
    if (socket) {
      const std::string local = to_endpoint(local_address_of(socket->get())).host;
      const std::string peer = to_endpoint(peer_address_of(socket->get())).host;
      adopt(std::move(*socket));
      fsm_.on_connected(local, peer, Clock::now());
    } else {
      fsm_.on_connect_failed(socket.error().what(), Clock::now());
    }
    pump();
  }

  [[nodiscard]] bool is_wanted() const override { return connection_ == fsm_.wanted_connection(); }
  [[nodiscard]] std::string_view output() override {
    outgoing_ += fsm_.take_output();
    return outgoing_;
  }
  void on_sent(std::size_t bytes) override { outgoing_.erase(0, bytes); }
  void on_received(std::string_view bytes) override { fsm_.on_received(bytes, Clock::now()); }
  void on_broken(int error) override {
    fsm_.on_disconnected(
        error == 0 ? "it closed the connection" : std::generic_category().message(error),
        Clock::now());
  }
  void on_unproven(secure::TlsEngine::Failure failure) override {
    const std::string why = token_refusal(failure);
    if (why != warned_) log::warning("the store at {} {}", to_string(endpoint_), why);
    warned_ = why;
    fsm_.on_disconnected("it " + why, Clock::now());
  }
  [[nodiscard]] std::optional<Time> next_deadline() const override { return fsm_.next_deadline(); }
  void on_time(Time now) override { fsm_.on_time(now); }

  InquiryFsm fsm_;
  const Endpoint endpoint_;
  const Told told_;
  std::optional<std::uint64_t> connection_;
  std::string outgoing_;
  std::string warned_;  // of this
  Whereabouts said_;
};

Lookout::Lookout(asio::io_context& io, const std::vector<Endpoint>& endpoints,
                 const InquiryFsm::Options& options, const Sink& sink) {
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    InquiryFsm::Options mine = options;
    if (literal_addresses(endpoints[i]).empty()) {  // each attempt looks it up
      mine.connecting += kLookUpTime;
      mine.retry = std::max(mine.retry, InquiryFsm::Options().retry);
    }
    inquiries_.push_back(std::make_shared<Inquiry>(
        io, endpoints[i], mine, [i, sink](const Whereabouts& answer) { sink(i, answer); }));
    inquiries_.back()->fsm().start(StreamConnection::Clock::now());
    inquiries_.back()->schedule();
  }
}

Lookout::~Lookout() {
  for (const auto& each : inquiries_)
    each->abandon();
}

void Lookout::tell(const StoreNews& news) {
  for (const auto& each : inquiries_) {
    each->fsm().tell(news, StreamConnection::Clock::now());
    each->schedule();
  }
}

}  // namespace drun::store
