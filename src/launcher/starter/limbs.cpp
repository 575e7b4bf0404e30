#include "launcher/starter/limbs.hpp"

#include <memory>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "drun/version.hpp"
#include "launcher/starter/self_copy.hpp"

namespace drun::launcher {

using hosts::Frame;
using hosts::FrameType;
using hosts::Target;

namespace {

constexpr std::size_t kLongestMachine = 100;

}  // namespace

Limbs::Limbs(asio::io_context& io, Calls calls) : io_(io), calls_(std::move(calls)) {}

void Limbs::start(const hosts::Branch& branch, const std::string& by) {
  branch_ = branch;
  branch_.targets.clear();
  launcher_.words = branch.launcher;
  by_ = by;
  if (branch.copy_self) offer_ = self_offer();
  for (const auto& targets : branches_of(branch.targets, branch.fan_out))
    start_limb(targets);
}

void Limbs::start_limb(const std::vector<Target>& targets) {
  if (closed_) return;
  Limb& limb = limbs_.emplace_back();
  limb.own = targets.front();
  limb.rest.assign(targets.begin() + 1, targets.end());
  for (const Target& target : targets) {
    limb.waiting.emplace(target.host, target.name);
    by_host_[target.host] = &limb;
  }
  try {
    limb.edge = std::make_unique<Edge>(
        io_, hosts::remote_command(launcher_, limb.own.name, branch_.drun, offer_),
        Edge::Calls{[this, &limb](const Frame& frame) { on_frame(limb, frame); },
                    [this, &limb](const std::string& machine) { on_copy_wanted(limb, machine); },
                    [this, &limb](const Edge::Ending& ending) { on_ended(limb, ending); }});
    ++edges_left_;
  } catch (const std::system_error& error) {
    limb.over = true;
    tell_failure(limb, limb.own.host, printable(error.what()));
    start_rest(limb);
  }
}

void Limbs::on_frame(Limb& limb, const Frame& frame) {
  if (closed_ || limb.over) return;
  if (!limb.greeted) return on_hello(limb, frame);
  const auto whose = limb.waiting.find(frame.host);
  if (whose == limb.waiting.end()) return;
  const bool last = frame.type == FrameType::Ended || frame.type == FrameType::Failed;
  if (last) limb.waiting.erase(whose);
  calls_.frame(frame);
  if (limb.waiting.empty()) limb.edge->close();
}

void Limbs::on_copy_wanted(Limb& limb, const std::string& machine) {
  if (closed_ || limb.over || limb.copied || offer_.name.empty()) return;
  limb.copied = true;
  if (const std::string own = own_machine(); machine != own)
    return reject(limb, "it is another kind of machine, " +
                            printable(machine.substr(0, kLongestMachine)) +
                            ", and this drun is for " + own + "; install drun there");
  limb.edge->send_file(open_self());
  calls_.frame({FrameType::Copying, limb.own.host});
}

// The first frame is the end's own.
void Limbs::on_hello(Limb& limb, const Frame& frame) {
  const auto hello = hosts::unpack_hello(frame.payload);
  if (frame.type != FrameType::Hello || !hello)
    return reject(limb, "what answers there is no drun");
  if (hello->version != DRUN_VERSION_STRING) {
    return reject(limb, "the drun there is another version, " + printable(hello->version) +
                            ", and this is " DRUN_VERSION_STRING "; install the same everywhere");
  }
  limb.greeted = true;
  hosts::Branch branch = branch_;
  branch.targets = std::move(limb.rest);
  limb.edge->send({FrameType::Branch, limb.own.host, pack(branch)});
  calls_.frame({FrameType::Hello, limb.own.host, frame.payload});
}

void Limbs::reject(Limb& limb, const std::string& why) {
  limb.over = true;
  if (limb.copied) {
    limb.edge->close();  // what waits for a copy tidies up at the end of it
  } else {
    limb.edge->kill();
  }
  tell_failure(limb, limb.own.host, why);
  start_rest(limb);
}

void Limbs::tell_failure(Limb& limb, std::uint32_t host, const std::string& why) {
  if (limb.waiting.erase(host) == 0 || closed_) return;
  calls_.frame({FrameType::Failed, host, why + (by_.empty() ? "" : " (from " + by_ + ")")});
}

// What a host that is not there would have started: this process does.
void Limbs::start_rest(Limb& limb) {
  if (closed_ || limb.rest.empty()) return;
  for (const Target& target : limb.rest)
    limb.waiting.erase(target.host);
  for (const auto& targets : branches_of(std::exchange(limb.rest, {}), branch_.fan_out))
    start_limb(targets);
}

void Limbs::on_ended(Limb& limb, const Edge::Ending& ending) {
  --edges_left_;
  if (!limb.over) {
    limb.over = true;
    const bool copied = limb.copied || (!offer_.name.empty() && ending.code == hosts::kCopyFailed);
    const hosts::Attempt attempt{launcher_,         limb.own.name, branch_.drun, ending.code,
                                 ending.stderr_end, copied,        ending.noise, ending.given_up};
    tell_failure(limb, limb.own.host,
                 limb.greeted ? hosts::why_lost(attempt) : hosts::why_not_reached(attempt));
    start_rest(limb);
    while (!limb.waiting.empty())
      tell_failure(limb, limb.waiting.begin()->first,
                   "lost with " + printable(limb.own.name) + ", which had started it");
  }
  if (idle()) calls_.idle();
}

Limbs::Limb* Limbs::limb_of(std::uint32_t host) {
  const auto found = by_host_.find(host);
  return found == by_host_.end() ? nullptr : found->second;
}

void Limbs::send(const Frame& frame) {
  Limb* limb = limb_of(frame.host);
  if (limb != nullptr && limb->greeted && !limb->over) limb->edge->send(frame);
}

void Limbs::give_up(std::uint32_t host) {
  Limb* limb = limb_of(host);
  if (limb == nullptr || limb->over || !limb->waiting.contains(host)) return;
  limb->waiting.erase(host);
  if (limb->own.host == host && !limb->greeted) {
    limb->edge->kill();  // its rest is started when it has ended
  } else if (limb->waiting.empty()) {
    limb->edge->close();
  }
}

void Limbs::close() {
  closed_ = true;
  for (Limb& limb : limbs_) {
    if (!limb.edge || limb.over) continue;
    if (limb.greeted) {
      limb.edge->close();
    } else {
      limb.edge->kill();
    }
  }
}

void Limbs::kill() {
  closed_ = true;
  for (Limb& limb : limbs_) {
    if (!limb.edge || limb.over) continue;
    limb.edge->kill();
  }
}

}  // namespace drun::launcher
