// The hosts that this process starts drun on, and those that hang on them: each of the first has an
// edge, and is told what it shall start itself. Both the starter and its ends have limbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/remote_command.hpp"
#include "launcher/starter/edge.hpp"

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
  void start_again(const hosts::Target& target) { start_limb({target}); }
  void send(const hosts::Frame& frame);
  // It has taken too long to answer.
  void give_up(std::uint32_t host);
  // All ends there end what they have started, and themselves. Nothing is told of them any more.
  void close();
  // Without asking.
  void kill();
  [[nodiscard]] bool idle() const { return edges_left_ == 0; }

 private:
  struct Limb {
    hosts::Target own;
    std::map<std::uint32_t, std::string> waiting;  // what has not said its last word, by number
    std::vector<hosts::Target> rest;               // what it shall start
    std::unique_ptr<Edge> edge;
    bool greeted = false;
    bool copied = false;  // it has asked for drun
    bool over = false;
  };

  void start_limb(const std::vector<hosts::Target>& targets);
  void on_frame(Limb& limb, const hosts::Frame& frame);
  void on_copy_wanted(Limb& limb, const std::string& machine);
  void on_hello(Limb& limb, const hosts::Frame& frame);
  void on_ended(Limb& limb, const Edge::Ending& ending);
  void reject(Limb& limb, const std::string& why);
  void tell_failure(Limb& limb, std::uint32_t host, const std::string& why);
  void start_rest(Limb& limb);
  [[nodiscard]] Limb* limb_of(std::uint32_t host);

  asio::io_context& io_;
  Calls calls_;
  hosts::Launcher launcher_;
  hosts::Branch branch_;  // without targets
  hosts::SelfOffer offer_;
  std::string by_;
  std::list<Limb> limbs_;
  std::map<std::uint32_t, Limb*> by_host_;
  std::size_t edges_left_ = 0;
  bool closed_ = false;
};

}  // namespace drun::launcher
