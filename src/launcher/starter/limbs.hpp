// The hosts that this process starts drun on, and those that hang on them: each of the first has an
// edge, and is told what it shall start itself. Both the starter and its ends have limbs. LimbsFsm
// decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <asio/io_context.hpp>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/starter/edge.hpp"
#include "launcher/starter/limbs_fsm.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`, which must run dry before this goes.
class Limbs {
 public:
  struct Calls {
    // What comes from a host, its own words or those of one that hangs on it.
    std::function<void(const hosts::Frame&)> frame;
    std::function<void()> idle;  // no edge is left
  };
  Limbs(asio::io_context& io, Calls calls);
  Limbs(const Limbs&) = delete;
  Limbs& operator=(const Limbs&) = delete;

  // What cannot be reached, or is lost, comes as FrameType::Failed. `by`: this host's name in such
  // words, "" for the starter.
  void start(const hosts::Branch& branch, const std::string& by);
  // One of the starter's hosts that has failed, once more.
  void start_again(const hosts::Target& target);
  void send(hosts::Frame frame);
  // It has taken too long to answer.
  void give_up(std::uint32_t host);
  // All ends there end what they have started, and themselves. Nothing is told of them any more.
  void close();
  // Without asking.
  void kill();
  [[nodiscard]] bool idle() const { return fsm_.idle(); }
  // That are kept; those that have ended until `io` has run once more.
  [[nodiscard]] std::size_t edges() const { return edges_.size(); }

 private:
  void act();
  void forget(LimbsFsm::LimbId limb);
  void perform(const LimbsFsm::StartAction& action);
  void perform(LimbsFsm::SendAction& action);
  void perform(const LimbsFsm::SendSelfAction& action);
  void perform(const LimbsFsm::CloseAction& action);
  void perform(const LimbsFsm::KillAction& action);
  void perform(const LimbsFsm::TellAction& action);
  void perform(const LimbsFsm::IdleAction& action);

  asio::io_context& io_;
  Calls calls_;
  LimbsFsm fsm_;
  std::map<LimbsFsm::LimbId, std::unique_ptr<Edge>> edges_;
};

}  // namespace drun::launcher
