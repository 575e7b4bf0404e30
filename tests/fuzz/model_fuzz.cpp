// Fuzz target: the server's peers and table against the naive model, request by request.
//
// Input: for each request u8 client and version, u8 where its bytes are cut, then the request as
// take_request() reads it. All clients get exactly the model's replies, in its order.
#include <array>
#include <memory>
#include <set>
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/requests.hpp"
#include "store/protocol/bytes.hpp"
#include "support/store_model.hpp"
#include "support/test_peer.hpp"

namespace drun::fuzz {
namespace {

namespace tcpstore = store::tcpstore;
using store::TcpStoreVersion;
using test::PeerWorld;
using test::StoreModel;
using test::TestPeer;

class Comparison {
 public:
  Comparison() {
    world_.context.old_clients_are_2_1 = true;
    for (std::size_t client = 0; client < kClients; ++client)
      connect(client);
  }

  void run(std::string_view input) {
    Source source(input);
    while (!source.empty())
      step(source);
  }

 private:
  static constexpr std::size_t kClients = 6;

  // The last two speak torch 2.1.
  static TcpStoreVersion version(std::size_t client) {
    return client < kClients - 2 ? TcpStoreVersion::Torch2_2 : TcpStoreVersion::Torch2_1;
  }

  void connect(std::size_t client) {
    model_.leave(client);
    peers_[client].reset();
    peers_[client] = std::make_unique<TestPeer>(world_);
    if (version(client) == TcpStoreVersion::Torch2_2)
      peers_[client]->send(tcpstore::kHandshake);
    else
      peers_[client]->ask("\6");  // an old client begins with a request that shows its kind
  }

  void step(Source& source) {
    const std::uint8_t head = source.u8();
    const std::size_t client = head % kClients;
    if (head >= 250) return connect(client);
    const std::uint8_t cut = source.u8();
    const tcpstore::Request request = take_request(source, version(client));
    std::string bytes;
    tcpstore::encode(bytes, version(client), request);
    in_pieces(bytes, cut, [&](std::string_view piece) { peers_[client]->send(piece); });
    model_.apply(client, version(client), request);
    if (request.op == tcpstore::Op::ListKeys) check_list(peers_[client]->take());
    for (std::size_t c = 0; c < kClients; ++c)
      check_client(c);
    require(world_.job.size() == model_.keys.size(), "as many keys as the model");
    require(world_.job.counts().waits == model_.waits.size(), "as many waits as the model");
    require(world_.budget.used() == world_.job.count_held_bytes(), "what is held was counted");
  }

  void check_client(std::size_t client) {
    require_same(peers_[client]->is_closed() ? peers_[client]->close_reason() : "",
                 model_.is_closed[client] ? "the key's value is not a number" : "",
                 "closed as the model");
    require_same(peers_[client]->take(), model_.out[client], "answers as the model");
    model_.out[client].clear();
    if (model_.is_closed[client]) connect(client);
  }

  void check_list(const std::string& reply) {
    store::ByteReader in(reply);
    std::set<std::string> listed;
    const auto count = in.take<std::uint64_t>();
    for (std::uint64_t n = 0; n < count && in.ok(); ++n)
      listed.emplace(in.take_bytes(in.take<std::uint64_t>()));
    require(in.ok() && in.rest().empty(), "a list of keys");
    require(count == listed.size() && count == model_.keys.size(), "each key once");
    for (const std::string& key : listed)
      require(model_.keys.contains(key), "lists what the model has");
  }

  PeerWorld world_;
  StoreModel model_{kClients};
  std::array<std::unique_ptr<TestPeer>, kClients> peers_;
};

}  // namespace
}  // namespace drun::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drun::fuzz::Comparison().run(drun::fuzz::as_text(data, size));
  return 0;
}
