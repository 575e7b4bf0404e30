// Fuzz target: clients behind the relays of two nodes, and some without one, against the naive
// model; and what a relay's store, or a store's relay, may say.
//
// Input: u8 what is tried. 0 to 127: for each request u8 client, u8 where its bytes are cut, then
// the request as take_request() reads it. 128 to 191: bytes that a relay hears. 192 and more: bytes
// that a store hears from a relay.
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz/fuzz.hpp"
#include "fuzz/requests.hpp"
#include "store/relay/relay_mux.hpp"
#include "support/relayed_world.hpp"
#include "support/store_model.hpp"

namespace drun::fuzz {
namespace {

namespace tcpstore = store::tcpstore;
using store::TcpStoreVersion;
using test::PeerWorld;
using test::RelayedNode;
using test::RelayedPeer;
using test::StoreModel;
using test::TestPeer;

class RelayComparison {
 public:
  RelayComparison() {
    for (RelayedNode& node : nodes_) {  // which is to know of one queue that it is one
      RelayedPeer first(node);
      std::string bytes(tcpstore::kHandshake);
      tcpstore::encode(bytes, TcpStoreVersion::Torch2_2,
                       {.op = tcpstore::Op::QueueLen, .key = "q"});
      first.send(bytes);
    }
    for (std::size_t client = 0; client < kClients; ++client)
      connect(client);
  }

  void run(Source& source) {
    while (!source.empty())
      step(source);
  }

 private:
  static constexpr std::size_t kClients = 6;

  void connect(std::size_t client) {
    model_.leave(client);
    peers_[client].reset();
    peers_[client] = std::make_unique<RelayedPeer>(nodes_[client % 2]);
    peers_[client]->send(tcpstore::kHandshake);
  }

  // Those who wait for it are of that node. It takes it for a key, until it hears of what is in it.
  static std::string_view unknown_queue(std::size_t node, std::size_t number) {
    static constexpr std::string_view kNames[][3] = {{"l0", "l1", "l2"}, {"r0", "r1", "r2"}};
    return kNames[node][number % std::size(kNames[node])];
  }

  void step(Source& source) {
    const std::uint8_t head = source.u8();
    const std::size_t client = head % kClients;
    if (head >= 250) return connect(client);
    const std::uint8_t cut = source.u8();
    tcpstore::Request request = take_request(source, TcpStoreVersion::Torch2_2);
    using tcpstore::Op;
    if (request.op == Op::QueuePush || request.op == Op::QueuePop || request.op == Op::QueueLen)
      request.key = cut % 3 == 0 ? "q" : unknown_queue(cut % 3 - 1U, cut / 3);
    if (request.op == Op::Wait && request.keys.size() == 1 && cut % 2 == 0)
      request.keys = {unknown_queue(client % 2, cut / 2)};
    std::string bytes;
    tcpstore::encode(bytes, TcpStoreVersion::Torch2_2, request);
    in_pieces(bytes, cut, [&](std::string_view piece) { peers_[client]->send(piece); });
    model_.apply(client, TcpStoreVersion::Torch2_2, request);
    if (request.op == tcpstore::Op::ListKeys) (void)peers_[client]->take();
    for (std::size_t c = 0; c < kClients; ++c) {
      require(peers_[c]->is_closed() == model_.is_closed[c], "closed as the model");
      require_same(peers_[c]->take(), model_.out[c], "answers as the model");
      model_.out[c].clear();
      if (model_.is_closed[c]) connect(c);
    }
    require(world_.job.counts().waits <= model_.waits.size(), "no more waits than the model");
    require(world_.budget.used() == world_.job.count_held_bytes(), "what is held was counted");
  }

  PeerWorld world_;
  RelayedNode nodes_[2]{{world_}, {world_, 3}};
  StoreModel model_{kClients};
  std::array<std::unique_ptr<RelayedPeer>, kClients> peers_;
};

// Some of it is what a store says.
void hear_of_store(Source& source) {
  store::RelayMux mux;
  std::string done;
  store::control::encode(done, 1, store::control::Reply(store::control::Done{}));
  if (source.u8() % 4 != 0) mux.take_from_store(done);
  std::array<store::RelayMux::Stream, 3> clients{};
  for (auto& client : clients)
    client = mux.add();
  while (!source.empty() && !mux.is_broken()) {
    const std::uint8_t head = source.u8();
    const auto client = clients[head % 3];
    std::string bytes;
    switch (head / 3 % 4) {
      case 0:
        tcpstore::encode(bytes, TcpStoreVersion::Torch2_2,
                         take_request(source, TcpStoreVersion::Torch2_2));
        mux.take(client, (head >= 128 ? std::string(tcpstore::kHandshake) : "") + bytes);
        break;
      case 1:
        store::relay_frames::append_frame(
            bytes, source.u8() % 8U,
            static_cast<store::relay_frames::Type>(0x8F + source.u8() % 7U),
            source.bytes(source.u8() % 24U));
        mux.take_from_store(bytes);
        break;
      case 2:
        mux.take_from_store(source.bytes(source.u8()));
        break;
      default:
        mux.on_sent(client, mux.output(client).size());
        if (head >= 240) mux.end(client);
        if (head % 7 == 0) mux.lose(client);
        mux.on_store_took(mux.to_store().size() / 2);
        break;
    }
    mux.end_turn();
    (void)mux.take_changed();
  }
}

// Two get the same, one in pieces: they answer alike.
void hear_of_relay(Source& source) {
  std::array<std::string, 2> answers;
  const std::uint8_t cut = source.u8();
  std::string bytes;
  store::control::encode_opening(bytes);
  store::relay_frames::append_frame(bytes, 1, store::relay_frames::Type::Begin);
  while (!source.empty()) {
    const std::uint8_t kind = source.u8();
    std::string body;
    if (kind % 8 < 6)
      tcpstore::encode(body, TcpStoreVersion::Torch2_2,
                       take_request(source, TcpStoreVersion::Torch2_2));
    else if (kind % 8 == 6)
      body = source.bytes(source.u8() % 40U);
    store::relay_frames::append_frame(bytes, source.u8() % 5U,
                                      kind % 8 == 7    ? store::relay_frames::Type::Leave
                                      : kind % 16 == 6 ? store::relay_frames::Type::PassOn
                                      : kind % 16 == 5 ? store::relay_frames::Type::SharedWait
                                                       : store::relay_frames::Type::Request,
                                      body);
  }
  std::array<bool, 2> closed{};
  for (std::size_t i = 0; i < 2; ++i) {
    PeerWorld world;
    {
      TestPeer relay(world);
      in_pieces(bytes, i == 0 ? std::uint8_t{0} : cut, [&](std::string_view piece) {
        relay.send(piece);
        answers[i] += relay.take();
        while (relay.is_paused()) {
          relay.resume();
          answers[i] += relay.take();
        }
      });
      closed[i] = relay.is_closed();
    }
    require(world.job.counts().waits == 0, "its waits end with it");
  }
  require(closed[0] == closed[1], "closed alike");
  require_same(answers[0], answers[1], "answers alike");
}

}  // namespace
}  // namespace drun::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drun::fuzz::Source source(drun::fuzz::as_text(data, size));
  const std::uint8_t what = source.u8();
  if (what < 128)
    drun::fuzz::RelayComparison().run(source);
  else if (what < 192)
    drun::fuzz::hear_of_store(source);
  else
    drun::fuzz::hear_of_relay(source);
  return 0;
}
