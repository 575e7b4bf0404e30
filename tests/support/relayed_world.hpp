// Clients of a store behind a relay's mux, without sockets: as Relay wires it, to quiescence after
// each event.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "store/relay/relay_mux.hpp"
#include "support/test_peer.hpp"

namespace drun::test {

// The relay of one node.
class RelayedNode {
 public:
  using Stream = store::RelayMux::Stream;
  using Fate = store::RelayMux::Fate;

  // `cut`: what goes over the shared connection comes in pieces of so many bytes; 0: whole.
  RelayedNode(PeerWorld& world, std::size_t cut = 0) : world_(world), cut_(cut) { pump(); }

  // All that can happen now.
  void pump() {
    while (pass_to_store() || pass_from_store()) {
    }
  }
  // What is on its way one way gets there; false: nothing is.
  bool pass_to_store() {
    mux_.end_turn();
    const std::string bytes(mux_.to_store());
    if (bytes.empty()) return false;
    mux_.on_store_took(bytes.size());
    in_cuts(bytes, [&](std::string_view piece) { trunk_.send(piece); });
    return true;
  }
  bool pass_from_store() {
    while (trunk_.is_paused() && trunk_.output().empty())
      trunk_.resume();
    const std::string bytes = trunk_.take();
    if (bytes.empty()) return false;
    in_cuts(bytes, [&](std::string_view piece) { mux_.take_from_store(piece); });
    if (mux_.is_broken() || trunk_.is_closed()) throw std::logic_error("the relay's connection");
    if (trunk_.is_paused()) trunk_.resume();
    return true;
  }
  [[nodiscard]] store::RelayMux& mux() { return mux_; }
  [[nodiscard]] TestPeer& trunk() { return trunk_; }
  [[nodiscard]] PeerWorld& world() { return world_; }

 private:
  template <typename Take>
  void in_cuts(std::string_view bytes, Take take) const {
    for (; !bytes.empty() && cut_ > 0 && cut_ < bytes.size(); bytes.remove_prefix(cut_))
      take(bytes.substr(0, cut_));
    take(bytes);
  }

  PeerWorld& world_;
  const std::size_t cut_;
  TestPeer trunk_{world_};
  store::RelayMux mux_;
};

// One client of it. It looks like a TestPeer.
class RelayedPeer {
 public:
  explicit RelayedPeer(RelayedNode& node) : node_(node), stream_(node.mux().add()) {}
  RelayedPeer(const RelayedPeer&) = delete;
  RelayedPeer& operator=(const RelayedPeer&) = delete;
  ~RelayedPeer() {
    if (!stream_) return;
    node_.mux().forget(*stream_);
    node_.pump();
  }

  void send(std::string_view bytes) {
    collect();
    if (is_closed()) return;
    if (alone_) return go_alone(bytes);
    node_.mux().take(*stream_, bytes);
    collect();
  }
  // Without anything coming of it before the next call.
  void say(std::string_view bytes) { node_.mux().take(*stream_, bytes); }
  // What has come by itself.
  std::string hear() {
    const std::string bytes(node_.mux().output(*stream_));
    node_.mux().on_sent(*stream_, bytes.size());
    return std::exchange(heard_, {}) + bytes;
  }
  std::string take() {
    collect();
    return std::exchange(heard_, {});
  }
  [[nodiscard]] bool is_closed() const {
    if (alone_) return alone_->is_closed();
    return node_.mux().fate(*stream_) == RelayedNode::Fate::Closing;
  }
  [[nodiscard]] const char* close_reason() const {
    return alone_ ? alone_->close_reason() : node_.mux().reason(*stream_).c_str();
  }
  [[nodiscard]] bool is_alone() const { return alone_ != nullptr; }

 private:
  void collect() {
    node_.pump();
    while (stream_) {
      const std::string bytes(node_.mux().output(*stream_));
      heard_ += bytes;
      node_.mux().on_sent(*stream_, bytes.size());
      node_.pump();
      if (node_.mux().fate(*stream_) == RelayedNode::Fate::Own) {
        const std::string said = node_.mux().take_over(*stream_);
        stream_.reset();
        alone_ = std::make_unique<TestPeer>(node_.world());
        if (!said.empty()) go_alone(said);
      } else if (bytes.empty()) {
        break;
      }
    }
    if (alone_) go_alone({});
  }
  void go_alone(std::string_view bytes) {
    if (!bytes.empty()) alone_->send(bytes);
    heard_ += alone_->take();
    while (alone_->is_paused()) {
      alone_->resume();
      heard_ += alone_->take();
    }
  }

  RelayedNode& node_;
  std::optional<RelayedNode::Stream> stream_;
  std::unique_ptr<TestPeer> alone_;
  std::string heard_;
};

}  // namespace drun::test
