#include "store/client/inquiry_fsm.hpp"

#include <utility>
#include <variant>

#include "base/addresses.hpp"

namespace drun::store {
namespace {

constexpr std::uint16_t kFindVersion = 3;
constexpr std::size_t kLongestAnswer = 4'096;

}  // namespace

void InquiryFsm::start(Time now) {
  if (phase_ == Phase::Idle) connect(now);
}

void InquiryFsm::tell(StoreNews news, Time now) {
  if (news == news_) return;
  news_ = std::move(news);
  is_to_be_told_ = true;
  if (phase_ == Phase::Connected && !asked_) ask(now);
}

// Short attempts: TCP's own would come to a machine that is back too late.
void InquiryFsm::connect(Time now) {
  phase_ = Phase::Connecting;
  ++connection_;
  input_.clear();
  output_.clear();
  asked_ = false;
  due_ = now + options_.connecting;
}

void InquiryFsm::rest(std::string cause, Time now) {
  answer_ = {Whereabouts::Kind::NoAnswer, std::move(cause), 0, {}};
  phase_ = Phase::Resting;
  due_ = now + options_.retry;
}

void InquiryFsm::on_connected(std::string local, std::string_view peer, Time now) {
  if (phase_ != Phase::Connecting) return;
  phase_ = Phase::Connected;
  local_ = std::move(local);
  peer_is_loopback_ = is_loopback_address(peer);
  next_request_ = 1;
  control::encode_opening(output_);
  ask(now);
}

void InquiryFsm::ask(Time now) {
  asked_ = true;
  is_to_be_told_ = false;
  due_ = now + options_.patience;
  control::Find find;
  find.generation = news_.generation;
  find.host = news_.address.empty() ? local_ : news_.address;
  find.port = news_.port;
  find.job = options_.job;
  find.founders = options_.founders;
  control::encode(output_, next_request_++, control::Request(find));
}

void InquiryFsm::on_connect_failed(const std::string& cause, Time now) {
  if (phase_ == Phase::Connecting) rest(cause, now);
}

void InquiryFsm::on_disconnected(const std::string& cause, Time now) {
  if (phase_ == Phase::Connected) rest(cause, now);
}

void InquiryFsm::on_received(std::string_view bytes, Time now) {
  if (phase_ != Phase::Connected) return;
  input_.append(bytes);
  std::size_t used = 0;
  while (phase_ == Phase::Connected) {
    const auto found = control::next_frame(std::string_view(input_).substr(used), kLongestAnswer);
    if (found.status == control::FrameStatus::NeedMore) break;
    control::Reply reply;
    if (found.status != control::FrameStatus::Complete ||
        control::decode_reply(found.frame, reply) != control::DecodeStatus::Ok)
      return rest("no drun agent answers there", now);
    used += found.size;
    on_reply(reply, now);
  }
  input_.erase(0, used);
}

void InquiryFsm::on_reply(const control::Reply& reply, Time now) {
  using enum Whereabouts::Kind;
  if (const auto* welcome = std::get_if<control::Welcome>(&reply)) {
    if (welcome->version < kFindVersion) rest("an older version of drun is there", now);
    return;
  }
  if (const auto* refused = std::get_if<control::VersionRefused>(&reply))
    return rest("it refuses this version of drun: " + std::string(refused->text), now);
  if (const auto* error = std::get_if<control::Error>(&reply)) {
    answer_ = {NoAnswer, std::string(error->text), 0, {}};
  } else if (const auto* moved = std::get_if<control::Moved>(&reply)) {
    const Endpoint place{std::string(moved->host), moved->port};
    // A loopback address leads each machine to itself, so it is of use only if the server is on
    // this machine.
    const bool usable = !numeric_addresses(place.host).empty() && place.port != 0 &&
                        (peer_is_loopback_ || !is_loopback_address(place.host));
    if (moved->generation == 0)
      answer_ = {Waits, {}, 0, {}};
    else if (place.host.empty() && place.port != 0)
      answer_ = {Sought, {}, moved->generation, {}};
    else if (place.host.empty())
      answer_ = {Here, {}, moved->generation, {}};
    else if (usable)
      answer_ = {There, {}, moved->generation, place};
    else
      answer_ = {NoAnswer, "it names no place of use here", 0, {}};
  } else {
    return rest("no drun agent answers there", now);
  }
  asked_ = false;
  due_ = now + options_.period;
  if (is_to_be_told_) ask(now);
}

void InquiryFsm::on_time(Time now) {
  const auto due = next_deadline();
  if (!due || now < *due) return;
  switch (phase_) {
    case Phase::Connecting:
      answer_ = {Whereabouts::Kind::NoAnswer, "no answer", 0, {}};
      return connect(now);
    case Phase::Connected:
      if (!asked_) return ask(now);
      answer_ = {Whereabouts::Kind::NoAnswer, "no answer", 0, {}};
      return connect(now);
    case Phase::Resting:
      return connect(now);
    case Phase::Idle:
      return;
  }
}

std::optional<InquiryFsm::Time> InquiryFsm::next_deadline() const {
  if (phase_ == Phase::Idle) return std::nullopt;
  return due_;
}

std::optional<std::uint64_t> InquiryFsm::wanted_connection() const {
  if (phase_ != Phase::Connecting && phase_ != Phase::Connected) return std::nullopt;
  return connection_;
}

std::string InquiryFsm::take_output() {
  return std::exchange(output_, {});
}

}  // namespace drun::store
