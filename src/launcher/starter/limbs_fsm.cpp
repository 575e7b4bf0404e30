#include "launcher/starter/limbs_fsm.hpp"

#include <utility>

#include "base/printable.hpp"
#include "drun/version.hpp"
#include "secure/token.hpp"

namespace drun::launcher {

using hosts::Frame;
using hosts::FrameType;
using hosts::Target;

namespace {

constexpr std::size_t kLongestMachine = 100;

}  // namespace

void LimbsFsm::start(const hosts::Branch& branch, const std::string& by,
                     const hosts::SelfOffer& offer) {
  branch_ = branch;
  branch_.targets.clear();
  launcher_.words = branch.launcher;
  by_ = by;
  offer_ = offer;
  for (const auto& targets : branches_of(branch.targets, branch.fan_out))
    start_limb(targets);
}

void LimbsFsm::start_limb(const std::vector<Target>& targets) {
  if (closed_) return;
  const LimbId id = limbs_.size();
  Limb& limb = limbs_.emplace_back();
  limb.own = targets.front();
  limb.rest.assign(targets.begin() + 1, targets.end());
  for (const Target& target : targets) {
    limb.waiting.emplace(target.host, target.name);
    by_host_[target.host] = id;
  }
  ++edges_left_;
  actions_.emplace_back(
      StartAction{id, hosts::remote_command(launcher_, limb.own.name, branch_.drun, offer_)});
}

void LimbsFsm::on_not_started(LimbId id, const std::string& why) {
  Limb& limb = limbs_.at(id);
  --edges_left_;
  limb.state = State::Over;
  tell_failure(limb, limb.own.host, why);
  start_rest(limb);
}

void LimbsFsm::on_frame(LimbId id, const Frame& frame) {
  Limb& limb = limbs_.at(id);
  if (closed_ || limb.state == State::Over) return;
  if (limb.state != State::Greeted) return on_hello(id, frame);
  const auto whose = limb.waiting.find(frame.host);
  if (whose == limb.waiting.end()) return;
  const bool last = frame.type == FrameType::Ended || frame.type == FrameType::Failed;
  if (last) limb.waiting.erase(whose);
  actions_.emplace_back(TellAction{frame});
  if (limb.waiting.empty()) actions_.emplace_back(CloseAction{id});
}

void LimbsFsm::on_copy_wanted(LimbId id, const std::string& machine, const std::string& own) {
  Limb& limb = limbs_.at(id);
  if (closed_ || limb.state != State::Reached || offer_.name.empty()) return;
  limb.copied = true;
  limb.state = State::Copying;
  if (machine != own)
    return reject(id, "it is another kind of machine, " +
                          printable(machine.substr(0, kLongestMachine)) +
                          ", and this drun is for " + own + "; install drun there");
  actions_.emplace_back(SendSelfAction{id});
  actions_.emplace_back(TellAction{{FrameType::Copying, limb.own.host}});
}

// The first frame is the end's own.
void LimbsFsm::on_hello(LimbId id, const Frame& frame) {
  const auto hello = hosts::unpack_hello(frame.payload);
  if (frame.type != FrameType::Hello || !hello) return reject(id, "what answers there is no drun");
  if (hello->version != DRUN_VERSION_STRING) {
    return reject(id, "the drun there is another version, " + printable(hello->version) +
                          ", and this is " DRUN_VERSION_STRING "; install the same everywhere");
  }
  Limb& limb = limbs_.at(id);
  limb.state = State::Greeted;
  hosts::Branch branch = branch_;
  branch.targets = std::move(limb.rest);
  limb.rest.clear();
  actions_.emplace_back(SendAction{id, {FrameType::Branch, limb.own.host, pack(branch)}});
  actions_.emplace_back(TellAction{{FrameType::Hello, limb.own.host, frame.payload}});
}

void LimbsFsm::reject(LimbId id, const std::string& why) {
  Limb& limb = limbs_.at(id);
  limb.state = State::Over;
  if (limb.copied) {
    actions_.emplace_back(CloseAction{id});  // what waits for a copy tidies up at the end of it
  } else {
    actions_.emplace_back(KillAction{id});
  }
  tell_failure(limb, limb.own.host, why);
  start_rest(limb);
}

void LimbsFsm::tell_failure(Limb& limb, std::uint32_t host, const std::string& why) {
  if (limb.waiting.erase(host) == 0 || closed_) return;
  actions_.emplace_back(
      TellAction{{FrameType::Failed, host, why + (by_.empty() ? "" : " (from " + by_ + ")")}});
}

// What a host that is not there would have started: this process does.
void LimbsFsm::start_rest(Limb& limb) {
  if (closed_ || limb.rest.empty()) return;
  for (const Target& target : limb.rest)
    limb.waiting.erase(target.host);
  for (const auto& targets : branches_of(std::exchange(limb.rest, {}), branch_.fan_out))
    start_limb(targets);
}

void LimbsFsm::on_ended(LimbId id, const EdgeEnding& ending) {
  Limb& limb = limbs_.at(id);
  --edges_left_;
  edge_ended_ = true;
  const State before = std::exchange(limb.state, State::Over);
  if (before == State::Over) return;
  const bool copied = limb.copied || (!offer_.name.empty() && ending.code == hosts::kCopyFailed);
  const hosts::Attempt attempt{launcher_,         limb.own.name, branch_.drun, ending.code,
                               ending.stderr_end, copied,        ending.noise, ending.given_up};
  tell_failure(
      limb, limb.own.host,
      before == State::Greeted ? hosts::why_lost(attempt) : hosts::why_not_reached(attempt));
  start_rest(limb);
  while (!limb.waiting.empty())
    tell_failure(limb, limb.waiting.begin()->first,
                 "lost with " + printable(limb.own.name) + ", which had started it");
}

void LimbsFsm::send(Frame frame) {
  const auto found = by_host_.find(frame.host);
  if (found == by_host_.end() || state(found->second) != State::Greeted)
    return secure::wipe(frame.payload);  // it may have the job's token
  actions_.emplace_back(SendAction{found->second, std::move(frame)});
}

void LimbsFsm::give_up(std::uint32_t host) {
  const auto found = by_host_.find(host);
  if (found == by_host_.end()) return;
  Limb& limb = limbs_.at(found->second);
  if (limb.state == State::Over || limb.waiting.erase(host) == 0) return;
  if (limb.own.host == host && limb.state != State::Greeted) {
    actions_.emplace_back(KillAction{found->second});  // its rest is started when it has ended
  } else if (limb.waiting.empty()) {
    actions_.emplace_back(CloseAction{found->second});
  }
}

void LimbsFsm::close() {
  end_all(false);
}

void LimbsFsm::kill() {
  end_all(true);
}

void LimbsFsm::end_all(bool at_once) {
  closed_ = true;
  // What was not begun never is, and nothing is told any more.
  for (const Action& action : std::exchange(actions_, {})) {
    if (const auto* start = std::get_if<StartAction>(&action)) {
      limbs_.at(start->limb).state = State::Over;
      --edges_left_;
    } else if (!std::holds_alternative<TellAction>(action)) {
      actions_.push_back(action);
    }
  }
  for (LimbId id = 0; id < limbs_.size(); ++id) {
    if (state(id) == State::Over) continue;
    if (state(id) == State::Greeted && !at_once) {
      actions_.emplace_back(CloseAction{id});
    } else {
      actions_.emplace_back(KillAction{id});
    }
  }
}

std::optional<LimbsFsm::Action> LimbsFsm::next() {
  if (!actions_.empty()) {
    Action action = std::move(actions_.front());
    actions_.pop_front();
    return action;
  }
  if (std::exchange(edge_ended_, false) && idle()) return IdleAction{};
  return std::nullopt;
}

}  // namespace drun::launcher
