#include "launcher/starter/limbs.hpp"

#include <system_error>
#include <utility>
#include <variant>

#include <asio/post.hpp>

#include "base/printable.hpp"
#include "launcher/starter/self_copy.hpp"
#include "secure/token.hpp"

namespace drun::launcher {

using hosts::Frame;

Limbs::Limbs(asio::io_context& io, Calls calls) : io_(io), calls_(std::move(calls)) {}

void Limbs::start(const hosts::Branch& branch, const std::string& by) {
  fsm_.start(branch, by, branch.copy_self ? self_offer() : hosts::SelfOffer());
  act();
}

void Limbs::start_again(const hosts::Target& target) {
  fsm_.start_again(target);
  act();
}

void Limbs::send(Frame frame) {
  fsm_.send(std::move(frame));
  act();
}

void Limbs::give_up(std::uint32_t host) {
  fsm_.give_up(host);
  act();
}

void Limbs::close() {
  fsm_.close();
  act();
}

void Limbs::kill() {
  fsm_.kill();
  act();
}

// What is told may call this again from inside.
void Limbs::act() {
  while (auto action = fsm_.next())
    std::visit([this](auto& each) { perform(each); }, *action);
}

void Limbs::perform(const LimbsFsm::StartAction& action) {
  const auto limb = action.limb;
  try {
    edges_[limb] =
        std::make_unique<Edge>(io_, action.command,
                               Edge::Calls{[this, limb](const Frame& frame) {
                                             fsm_.on_frame(limb, frame);
                                             act();
                                           },
                                           [this, limb](const std::string& machine) {
                                             fsm_.on_copy_wanted(limb, machine, own_machine());
                                             act();
                                           },
                                           [this, limb](const Edge::Ending& ending) {
                                             fsm_.on_ended(limb, ending);
                                             forget(limb);
                                             act();
                                           }});
  } catch (const std::system_error& error) {
    fsm_.on_not_started(limb, printable(error.what()));
  }
}

// A host that is tried again has an edge each time. This one is calling: what of it still waits in
// `io_` comes before this.
void Limbs::forget(LimbsFsm::LimbId limb) {
  asio::post(io_, [this, limb] { edges_.erase(limb); });
}

void Limbs::perform(LimbsFsm::SendAction& action) {
  edges_.at(action.limb)->send(action.frame);
  secure::wipe(action.frame.payload);  // it may have the job's token
}

void Limbs::perform(const LimbsFsm::SendSelfAction& action) {
  edges_.at(action.limb)->send_file(open_self());
}

void Limbs::perform(const LimbsFsm::CloseAction& action) {
  edges_.at(action.limb)->close();
}

void Limbs::perform(const LimbsFsm::KillAction& action) {
  edges_.at(action.limb)->kill();
}

void Limbs::perform(const LimbsFsm::TellAction& action) {
  calls_.frame(action.frame);
}

void Limbs::perform(const LimbsFsm::IdleAction& /*action*/) {
  calls_.idle();
}

}  // namespace drun::launcher
