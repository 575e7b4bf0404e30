// What each request of the control protocol does to the table and the sessions, and what it is
// answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "drun/store/limits.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

struct PeerContext;
class Peer;

// The largest value of the length field that this server takes.
[[nodiscard]] std::size_t longest_frame(const Limits& limits);
[[nodiscard]] control::Welcome welcome(const Limits& limits, std::uint16_t version);
// A CHANGES frame for one of the watches; those for the others differ in nothing but its number,
// which is in the header.
[[nodiscard]] std::string_view encode_changes(std::uint64_t watch, Publication& publication);

// Whether serving it takes much of a turn: the reply is long, or the request is, or others have to
// be told much. `session`: the peer's.
[[nodiscard]] bool takes_much(PeerContext& context, SessionId session, const control::Frame& frame);

// That the job's store is elsewhere, in the words of that version of the protocol.
void encode_moved(std::string& out, std::uint64_t request, const control::Moved& moved,
                  std::uint16_t version);

// Opens a session of that job for the peer, whose request had that number, and appends the reply to
// `out`. kNoSession: there is no room, which is the reply.
SessionId open_session(PeerContext& context, Peer& peer, const control::OpenSession& asked,
                       std::string_view job, std::uint64_t request, Time now, std::string& out);

// Lives for one frame.
class ControlHandler {
 public:
  // `session` is the peer's, and is changed by requests that open, resume or end it. Replies are
  // appended to `out`.
  ControlHandler(PeerContext& context, Peer& peer, SessionId& session, Time now, std::string& out)
      : context_(context), peer_(peer), session_(session), now_(now), out_(out) {}

  // False: the frame was malformed, which `out` says; the connection must be closed.
  [[nodiscard]] bool apply(const control::Frame& frame);

  // For std::visit.
  void operator()(const control::OpenSession& request);
  void operator()(const control::ResumeSession& request);
  void operator()(const control::Heartbeat& request);
  void operator()(const control::Goodbye& request);
  void operator()(const control::Transaction& request);
  void operator()(const control::Watch& request);
  void operator()(const control::Unwatch& request);
  void operator()(const control::Stats& request);
  void operator()(const control::Pulse& request);
  void operator()(const control::Confirm& request);
  void operator()(const control::OpenSuccessor& request);
  void operator()(const control::Gone& request);
  void operator()(const control::Find& request);
  void operator()(const control::LastWords& request);

 private:
  void reply(const control::Reply& message);
  void fail(control::ErrorCode code, std::string_view text);
  [[nodiscard]] bool check_id();
  [[nodiscard]] bool may_open();
  // False: the job's store is elsewhere, which is the reply.
  [[nodiscard]] bool is_right_store(std::string_view job);
  [[nodiscard]] bool check_key(std::string_view key);
  [[nodiscard]] bool check_reply(std::size_t bytes);
  [[nodiscard]] bool check_limits(const control::Transaction& request);
  [[nodiscard]] bool guards_hold(const control::Transaction& request) const;
  void refuse(const control::Transaction& request);
  // False: it is too long, which is the reply. No more is looked at than it takes to tell.
  [[nodiscard]] bool reply_snapshot(const control::Watch& request);

  PeerContext& context_;
  Peer& peer_;
  SessionId& session_;
  Time now_;
  std::string& out_;
  std::uint64_t request_ = 0;
};

}  // namespace drun::store
