// Which hosts are to be started from here, what has become of each, and what that means for those
// that hang on it. Pure: events go in, actions come out; limbs.hpp carries them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/remote_command.hpp"
#include "launcher/starter/edge_fsm.hpp"

namespace drun::launcher {

class LimbsFsm {
 public:
  // A host that is started from here, with those that hang on it; counted from 0.
  using LimbId = std::size_t;

  struct StartAction {  // on_not_started() or on_ended() follows
    LimbId limb = 0;
    std::vector<std::string> command;
  };
  struct SendAction {
    LimbId limb = 0;
    hosts::Frame frame;
  };
  struct SendSelfAction {  // this program's own file
    LimbId limb = 0;
  };
  struct CloseAction {  // it ends by itself then
    LimbId limb = 0;
  };
  struct KillAction {
    LimbId limb = 0;
  };
  struct TellAction {
    hosts::Frame frame;
  };
  struct IdleAction {};  // none is left
  using Action = std::variant<StartAction, SendAction, SendSelfAction, CloseAction, KillAction,
                              TellAction, IdleAction>;

  enum class State {
    Reached,  // for: its launcher runs, no drun has answered
    Copying,  // it has asked for a copy of drun
    Greeted,  // a drun has answered, and has been told what hangs on it
    Over      // its launcher is of no interest any more
  };

  // As Limbs'. `offer`: without a name there is none.
  void start(const hosts::Branch& branch, const std::string& by, const hosts::SelfOffer& offer);
  void start_again(const hosts::Target& target) { start_limb({target}); }
  void send(hosts::Frame frame);
  void give_up(std::uint32_t host);
  void close();
  void kill();

  void on_not_started(LimbId limb, const std::string& why);
  void on_frame(LimbId limb, const hosts::Frame& frame);
  // `own`: the kind of machine that this program is for.
  void on_copy_wanted(LimbId limb, const std::string& machine, const std::string& own);
  void on_ended(LimbId limb, const EdgeEnding& ending);

  // What to do now; nullopt: nothing until the next event.
  [[nodiscard]] std::optional<Action> next();

  [[nodiscard]] bool idle() const { return edges_left_ == 0; }
  [[nodiscard]] State state(LimbId limb) const { return limbs_.at(limb).state; }

 private:
  struct Limb {
    hosts::Target own;
    std::map<std::uint32_t, std::string> waiting;  // what has not said its last word, by number
    std::vector<hosts::Target> rest;               // what it shall start
    State state = State::Reached;
    bool copied = false;  // it has asked for drun
  };

  void start_limb(const std::vector<hosts::Target>& targets);
  void on_hello(LimbId limb, const hosts::Frame& frame);
  void reject(LimbId limb, const std::string& why);
  void tell_failure(Limb& limb, std::uint32_t host, const std::string& why);
  void start_rest(Limb& limb);
  void end_all(bool at_once);

  hosts::Launcher launcher_;
  hosts::Branch branch_;  // without targets
  hosts::SelfOffer offer_;
  std::string by_;
  std::deque<Limb> limbs_;
  std::map<std::uint32_t, LimbId> by_host_;
  std::deque<Action> actions_;
  std::size_t edges_left_ = 0;
  bool edge_ended_ = false;  // since IdleAction was considered
  bool closed_ = false;
};

}  // namespace drun::launcher
