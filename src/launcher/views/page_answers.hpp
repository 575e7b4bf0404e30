// What the status page answers. Nothing is computed, and nothing asked of the store, unless a
// request comes; documents are made in another thread and kept for a second, so that neither many
// readers nor a large job stand in the agent's way. No socket: requests come in as an argument.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file_worker.hpp"
#include "launcher/page/http_answer.hpp"
#include "launcher/page/http_request.hpp"
#include "launcher/telling/event_memory.hpp"
#include "launcher/views/job_watch.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/types.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's.
class PageAnswers {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Answer = std::function<void(HttpAnswer)>;

  static constexpr std::chrono::milliseconds kKeep{1'000};         // an answer
  static constexpr std::chrono::milliseconds kForSnapshot{3'000};  // a store that does not answer
  static constexpr std::chrono::milliseconds kWatchOn{30'000};     // after the last request
  static constexpr std::chrono::milliseconds kForEnd{25'000};      // for who waits for the end

  // All of it must outlive this.
  struct Parts {
    FileWork& files;  // makes the documents
    const EventMemory& events;
    std::function<status::AgentStatus()> own;
    std::function<Time()> clock;
    std::string run_id;
    bool takes_stacks = false;  // the page offers it
  };
  explicit PageAnswers(Parts parts);
  PageAnswers(const PageAnswers&) = delete;
  PageAnswers& operator=(const PageAnswers&) = delete;

  // `answer` is called once, at once or later.
  void serve(const HttpRequest& request, const Answer& answer);
  // At next_deadline(), which any other call, and each answer of `files`, may change.
  void on_time();
  [[nodiscard]] std::optional<Time> next_deadline() const;
  // This agent has this outcome: who waits for the end gets it at once. Once.
  void tell_end(const rendezvous::Outcome& outcome);
  // Nobody is answered any more.
  void close();

  // As JobWatch's.
  void set_link(rendezvous::KeyValue* link);
  bool on_event(const rendezvous::KeyValueEvent& event);

 private:
  struct Request {
    std::string topic;  // what the text of an answer depends on: "json", "open-metrics ranks"
    Answer answer;
  };
  struct Kept {
    Time made;
    HttpAnswer answer;
  };

  struct Waiter {
    Time until;
    Answer answer;
  };

  void ask(std::string topic, const Answer& answer);
  void await_end(const Answer& answer);
  void wait_no_longer();
  void advance();
  [[nodiscard]] std::vector<Request> take_due(Time now);
  void make(std::vector<Request> requests);

  const Parts parts_;
  JobWatch watch_;
  std::vector<Request> waiting_;
  std::map<std::string, Kept> kept_;
  std::deque<Waiter> await_end_;   // in the order of their time
  std::optional<HttpAnswer> end_;  // the job has ended for this agent
  bool making_ = false;
  bool closed_ = false;
  std::optional<Time> no_longer_;  // is the first snapshot waited for
  std::optional<Time> watch_until_;
};

}  // namespace drun::launcher
