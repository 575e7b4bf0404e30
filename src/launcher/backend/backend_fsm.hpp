// How this agent reaches the rendezvous backend: it finds the store, hosts it or connects to it,
// and begins anew if the store goes away before it knew this agent. Pure: what happened and the
// time go in, the next step comes out.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "drun/base/endpoint.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

enum class BackendState {
  Idle,        // not started
  Resolving,   // the addresses of the endpoint's host are asked for
  Binding,     // this machine is to host the store: its ports are being bound
  Pausing,     // before the store is looked for again
  Founding,    // of several endpoints: the job's store is looked for, or begun with others
  Connecting,  // to the store of another agent
  Contending,  // the same, at a port that this machine was to host at: binds it when it is free
  Opening,     // the store of this process serves; the link to it is not up yet
  Following,   // on the way to the job's store, of which the agent at the endpoint has told
  Alone,       // no store is needed; the backend of this process is not up yet
  Joined,      // the link is up, to a store elsewhere
  Hosting,     // the link is up, to the backend of this very process
  Lost,        // the link was up, and was given up for good
  Closed,      // the link was up, and said goodbye
  Over         // gave up, or was told to leave, before the link was up
};

// ---- steps: what the shell around this machine must do ----

// Look up whose the endpoint's host is; then call on_resolved() or on_unresolved().
struct LookUp {};
// Look for the job's store at all endpoints, and wait for the others where it may begin.
struct Found {};
// Bind the port of the rendezvous store, and what else a host needs, and serve; then call
// on_bound(), on_bind_failed() or on_unusable(). `note` is for the log, if it is not empty.
struct BindRendezvous {
  std::string note;
};
// Nobody else can take part: open the backend of this process.
struct GoAlone {};
// Open a link to the store there, in place of any other link. `limit`: for the first connection.
struct Connect {
  Endpoint endpoint;
  std::chrono::milliseconds limit{0};
};
// Send the present link there: the job's store has moved, as the one at the endpoint has said.
struct Follow {
  Endpoint endpoint;
};
// Tell the user; what follows comes by itself.
struct Wait {
  std::string text;
};
// The store went away before it knew this agent: let go of the link and of all ports; then as Wait.
struct StartOver {
  std::string text;
  bool serves_on = false;  // but not of the store at the endpoint and its ports
};
// The link is up for the first time: make ready what the others are to know of this node, and
// register; or call on_unusable().
struct Join {};
// This agent does not become a part of the job.
struct GiveUp {
  rendezvous::Outcome outcome;
};

using BackendStep = std::variant<std::monostate, LookUp, Found, BindRendezvous, GoAlone, Connect,
                                 Follow, Wait, StartOver, Join, GiveUp>;

class BackendFsm {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // "; port 29400 is held by process 1234 (nginx)", or nothing if nobody can tell. Asked only when
  // something else has the port that this machine was to host at.
  using PortHolder = std::function<std::string()>;

  // `options` must outlive this. The store is looked for until join_timeout after `now`.
  BackendFsm(const Options& options, Time now, PortHolder port_holder);

  // Inputs. One that means nothing in the present state changes nothing and asks for nothing.
  BackendStep start(Time now);
  // `own`: this machine has one of the addresses.
  BackendStep on_resolved(bool own, Time now);
  BackendStep on_unresolved(const std::string& why, Time now);
  // The store serves; this agent itself reaches it at `own`.
  BackendStep on_bound(const Endpoint& own, Time now);
  // `in_use`: something else has the port.
  BackendStep on_bind_failed(bool in_use, const std::string& why, Time now);
  // Something that this agent cannot do without is not to be had.
  BackendStep on_unusable(const std::string& why, Time now);
  BackendStep on_link_up();
  // The connection broke; the link tries again by itself. `dispensable`: the store has never
  // confirmed that it knows this agent, so that nothing is lost if it begins anew.
  BackendStep on_link_down(const std::string& cause, bool dispensable, Time now);
  // The server that this agent asked to be let in says that the store is at `place`.
  BackendStep on_moved(const Endpoint& place, Time now);
  BackendStep on_link_failed(const std::string& detail, bool dispensable, Time now);
  void on_link_closed();
  // At or after next_deadline(). `cause`: why there is no connection yet, as far as the link knows.
  BackendStep on_time(const std::string& cause, Time now);
  // The job is over for this agent: it looks for nothing any more, and a link that is up stays so.
  void leave();

  [[nodiscard]] std::optional<Time> next_deadline() const;
  [[nodiscard]] BackendState state() const { return state_; }
  // The link is or was up, and this agent has not begun anew since.
  [[nodiscard]] bool has_joined() const;
  // Until the join timeout; may be negative.
  [[nodiscard]] std::chrono::milliseconds time_left(Time now) const;
  // How it ends if this agent cannot go on before it has joined. If only the join timeout ended the
  // attempts, the exit code says so.
  [[nodiscard]] rendezvous::Outcome failure(std::string text, Time now) const;

 private:
  BackendStep find(Time now);
  [[nodiscard]] bool is_to_host(bool own) const;
  [[nodiscard]] std::string hosting_note(bool own) const;
  [[nodiscard]] std::string unresolved_text() const;
  [[nodiscard]] std::string store_text() const;
  [[nodiscard]] std::string founding_text(const std::string& cause) const;
  BackendStep start_over(const std::string& what, const std::string& next, Time now);
  BackendStep look_again(const std::string& cause, Time now);
  BackendStep open(Time now);
  [[nodiscard]] bool may_be_looked_for(Time now) const;
  BackendStep give_up_resolving(Time now);
  BackendStep connect(BackendState state, Time now);
  BackendStep wait_for_link(Time now) const;
  void pause(Time now);
  [[nodiscard]] std::string waiting_text(const std::string& what, Time now) const;
  [[nodiscard]] bool at_the_deadline(Time now) const;
  BackendStep give_up(std::string text, Time now);

  const Options& options_;
  const Time deadline_;
  const PortHolder port_holder_;
  BackendState state_ = BackendState::Idle;
  Time wake_;  // when Pausing ends, or the user is told again what a link that is not up waits for
  std::chrono::milliseconds next_pause_;
  std::string unresolved_;  // why, as the last answer had it
  std::string link_cause_;  // why there was no connection when it was last asked
  // Where this agent itself reaches the store that it serves at the endpoint, if it does.
  std::optional<Endpoint> own_;
  std::optional<Time> sent_away_;  // from there, for the first time
  // Until then it waits for the port of its own store, which something else has.
  std::optional<Time> port_limit_;
  std::string port_holder_text_;  // why it could not have the port, when last tried
  Endpoint followed_;             // where it was sent
  int hops_ = 0;                  // from one place that points to another
};

}  // namespace drun::launcher
