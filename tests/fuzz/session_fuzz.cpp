// Fuzz target: the server's sessions, any bytes of several connections in any split.
//
// Input: u8 options (1: roomy limits, 2: old clients are torch 2.1), then steps. A step is u8: two
// bits which connection, three bits what happens, one bit whether the output stays unread, two bits
// that are both set for very much of it; the rest depends on what happens. Two servers get the same
// bytes, one whole, one in pieces: they answer alike.
#include <array>
#include <memory>
#include <string>

#include "fuzz/control_stream.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/requests.hpp"
#include "support/test_peer.hpp"

namespace drun::fuzz {
namespace {

namespace control = store::control;
namespace tcpstore = store::tcpstore;
using store::Limits;
using test::PeerWorld;
using test::TestPeer;

constexpr std::size_t kConnections = 4;
constexpr control::Token kToken{7};

control::Token same_token() {
  return kToken;
}

Limits chosen_limits(std::uint8_t options) {
  Limits limits;
  const bool roomy = (options & 1) != 0;
  limits.key_bytes = roomy ? 200 : 16;
  limits.value_bytes = roomy ? 4000 : 64;
  limits.keys_per_request = roomy ? 100 : 8;
  limits.request_bytes = roomy ? 10'000 : 300;
  limits.total_bytes = roomy ? 100'000 : 3000;
  limits.reserved_bytes = roomy ? 5000 : 1000;
  limits.watches_per_connection = roomy ? 100 : 4;
  limits.unread_bytes = roomy ? 50'000 : 500;
  return limits;
}

// What one feed may add to the output beyond the mark at which a peer is paused: one reply and what
// its items take besides their bytes.
std::size_t longest_reply(const Limits& limits) {
  return limits.unread_bytes +
         16 * (limits.keys_per_request + (limits.total_bytes + limits.reserved_bytes) / 128) + 1000;
}

class Server {
 public:
  explicit Server(const Limits& limits, bool b) : world(limits) {
    world.context.new_token = &same_token;
    world.context.old_clients_are_2_1 = b;
    for (auto& peer : peers)
      peer = std::make_unique<TestPeer>(world);
  }

  void check() const {
    require(world.budget.used() == world.job.count_held_bytes() +
                                       world.sessions.size() * store::Sessions::kOverheadBytes,
            "what is held is what was counted");
    require(world.budget.used() <= world.limits.total_bytes + world.limits.reserved_bytes,
            "no more is held than the limit");
  }

  PeerWorld world;
  std::array<std::unique_ptr<TestPeer>, kConnections> peers;
};

class Scenario {
 public:
  explicit Scenario(std::uint8_t options)
      : limits_(chosen_limits(options)),
        is_b_((options & 2) != 0),
        whole_(limits_, is_b_),
        split_(limits_, is_b_) {}

  void run(Source& source) {
    while (!source.empty()) {
      step(source);
      whole_.check();
    }
    split_.check();
    for (Server* server : {&whole_, &split_}) {
      for (auto& peer : server->peers)
        peer.reset();
      require(server->world.job.counts().waits == 0, "nobody waits any more");
      require(server->world.job.counts().watches == 0, "nobody watches any more");
      server->world.sessions.expire(store::Time::max());
      server->world.job.clear();
      require(server->world.budget.used() == 0, "nobody holds anything any more");
    }
  }

 private:
  static bool is_flood(std::uint8_t head) { return head >= 0xC0; }
  static std::string repeated(std::string_view bytes, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i)
      all += bytes;
    return all;
  }

  void step(Source& source) {
    const std::uint8_t head = source.u8();
    const std::size_t who = head % kConnections;
    switch (head / 4 % 8) {
      case 0: {
        const std::uint8_t cut = source.u8();
        send(who, source.bytes(source.u8()), cut);
        break;
      }
      case 1: {
        const std::uint8_t cut = source.u8();
        send(who, source.bytes(source.u16() % 5000), cut);
        break;
      }
      case 2:
      case 3: {
        const auto version =
            head / 4 % 8 == 2 ? store::TcpStoreVersion::Torch2_2 : store::TcpStoreVersion::Torch2_1;
        const std::uint8_t cut = source.u8();
        std::string bytes;
        tcpstore::encode(bytes, version, take_request(source, version));
        send(who, is_flood(head) ? repeated(bytes, source.u8()) : bytes, cut);
        break;
      }
      case 4: {
        const std::uint8_t cut = source.u8();
        send(who,
             is_flood(head) ? take_flood(source, limits_.value_bytes) : take_frame(source, kToken),
             cut);
        break;
      }
      case 5: {
        const std::uint8_t cut = source.u8();
        std::string opening;
        control::encode_opening(opening);
        send(who, cut % 2 == 0 ? std::string_view(opening) : tcpstore::kHandshake, cut / 2);
        break;
      }
      case 6:
        reconnect(who);
        break;
      default:
        pass(store::Milliseconds(source.u16()));
    }
    if ((head & 0x20) == 0) read_all();
  }

  void send(std::size_t who, std::string_view bytes, std::uint8_t cut) {
    // Whether an old client is a 2.1 is guessed from how its bytes come, unless it is known.
    if (!is_b_) cut = 0;
    TestPeer& peer = *whole_.peers[who];
    const std::size_t before = std::max(peer.output().size(), TestPeer::kHighWater);
    if (!peer.is_closed()) sent_[who] += bytes;
    peer.send(bytes);
    require(peer.output().size() <= before + longest_reply(limits_), "output is bounded");
    note_taken(who);
    in_pieces(bytes, cut, [&](std::string_view piece) { split_.peers[who]->send(piece); });
    compare();
  }

  // Frames that the server has taken of a connection's bytes.
  void note_taken(std::size_t who) {
    const TestPeer& peer = *whole_.peers[who];
    std::string_view taken(sent_[who]);
    taken.remove_suffix(peer.left_over());
    taken.remove_prefix(noted_[who]);
    noted_[who] += taken.size();
    if (!peer.is_control()) return;
    if (noted_[who] == taken.size() && !taken.empty()) taken.remove_prefix(control::kOpeningBytes);
    while (!taken.empty()) {
      const control::FrameResult found = control::next_frame(taken, taken.size());
      require(found.status == control::FrameStatus::Complete, "takes whole frames");
      streams_[who].sent(found.frame, limits_.keys_per_request);
      taken.remove_prefix(found.size);
    }
  }

  void compare() {
    for (std::size_t i = 0; i < kConnections; ++i) {
      require_same(whole_.peers[i]->output(), split_.peers[i]->output(), "split as whole");
      require(whole_.peers[i]->is_closed() == split_.peers[i]->is_closed(), "split as whole");
    }
  }

  // Everybody reads all there is, and who paused goes on.
  void read_all() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < kConnections; ++i) {
        TestPeer& peer = *whole_.peers[i];
        const std::string output = peer.take();
        if (peer.is_control()) streams_[i].received(output, peer.is_closed());
        (void)split_.peers[i]->take();
        if (!peer.is_paused()) continue;
        peer.resume();
        note_taken(i);
        split_.peers[i]->resume();
        compare();
        more = true;
      }
      for (const auto& peer : whole_.peers)
        more = more || !peer->output().empty();
    }
    for (std::size_t i = 0; i < kConnections; ++i)
      if (!whole_.peers[i]->is_closed()) streams_[i].check_watches(whole_.world.job);
  }

  void reconnect(std::size_t who) {
    for (Server* server : {&whole_, &split_}) {
      server->peers[who].reset();
      server->peers[who] = std::make_unique<TestPeer>(server->world);
    }
    streams_[who] = ControlStream();
    sent_[who].clear();
    noted_[who] = 0;
  }

  void pass(store::Milliseconds time) {
    for (Server* server : {&whole_, &split_}) {
      server->world.now += time;
      server->world.sessions.expire(server->world.now);
    }
    compare();
  }

  const Limits limits_;
  const bool is_b_;
  Server whole_;
  Server split_;
  std::array<ControlStream, kConnections> streams_;
  std::array<std::string, kConnections> sent_;
  std::array<std::size_t, kConnections> noted_{};
};

}  // namespace
}  // namespace drun::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drun::fuzz::Source source(drun::fuzz::as_text(data, size));
  drun::fuzz::Scenario(source.u8()).run(source);
  return 0;
}
