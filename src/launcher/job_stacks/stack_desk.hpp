// The agent's looks at the stacks of its workers: taken by another process, which a thread waits
// for. Requests that come while one is under way share it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/file_desk.hpp"
#include "drun/base/result.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/take_stacks.hpp"
#include "launcher/output/output.hpp"
#include "launcher/workers/worker_group.hpp"
#include "stacks/elsewhere.hpp"
#include "stacks/job_look.hpp"

namespace drun::launcher {

// What to ask about these workers; `host`: this node's name.
[[nodiscard]] LookRequest look_request(const WorkerGroup& group, const WorkerOutput& output,
                                       const std::string& host, WorkerGroup::Time now);

struct StackWish {
  static constexpr std::chrono::milliseconds kLimit{10'000};
  // To the nodes and back, beside what the slowest of them takes.
  static constexpr std::chrono::milliseconds kOnTheWay{3'000};

  bool unwind = true;                        // else only what /proc says
  std::chrono::milliseconds limit = kLimit;  // of a node
  // Of the nodes of a job: what has come by then is the answer.
  std::chrono::milliseconds job_limit = kLimit + kOnTheWay;
  std::size_t longest = stacks::kLongestAnswer;  // of a node; what was found for others is cut
  bool keep = false;                             // keep the answer until the next round begins
  bool last = false;                             // a kept answer of this round is good enough
};

// One thread: the loop's, which it never blocks. Until somebody asks it has no thread of its own.
class StackDesk {
 public:
  // With a stacks::StackReport as JSON.
  using Done = std::function<void(const Result<std::string>& report)>;

  // In another thread, which it may hold up until it is stopped.
  using Look = std::function<Result<std::string>(const LookRequest&, ChildStop&)>;

  // `request` gives what to ask for; it is called from inside take(). `held` is called from the
  // loop: the workers may be stopped from now on; they are not any more. It may be empty.
  StackDesk(asio::io_context& io, std::function<LookRequest()> request, Look look = take_stacks,
            std::function<void(bool held)> held = {})
      : io_(io), request_(std::move(request)), look_(std::move(look)), held_(std::move(held)) {}

  // `done` is called from the loop, later, or, if what was found before will do, at once.
  void take(const StackWish& wish, Done done);
  // Such a report for people, in lines; `done` is called from the loop, later. `save` (it may be
  // empty) is called in another thread, with the whole of it as text and as JSON; the name of the
  // file that it returns, if there is one, is added, or why it failed.
  struct Described {
    std::string text;
    std::string file{};
  };
  using Save = std::function<std::string(const std::string& text, const std::string& json)>;
  void describe(std::string report, Save save, std::function<void(const Described&)> done);
  // Where the workers of such a report are, by rank; of none of which nothing is known. `done` is
  // called from the loop, later.
  using Frames = std::map<int, stacks::TellingFrame>;
  void find_frames(std::string report, std::function<void(const Frames&)> done);
  // Nobody is told anything any more. A look that is under way is ended: its process is gone
  // afterwards, unless the kernel keeps it for long.
  void cancel();

 private:
  void begin(const StackWish& wish);
  void give(const std::string& report, std::size_t longest, const Done& done);
  FileDesk& thread();

  asio::io_context& io_;
  const std::function<LookRequest()> request_;
  const Look look_;
  const std::function<void(bool held)> held_;
  std::optional<FileDesk> thread_;
  std::vector<std::shared_ptr<ChildStop>> looks_;  // those that were asked for, and are not over
  // Requests that wait for a look: for one without stacks, for one with them.
  struct Waiting {
    struct Each {
      Done done;
      std::size_t longest;
    };
    std::vector<Each> each;
    bool keep = false;  // one of them wants that
  };
  Waiting waiting_[2];
  std::optional<std::string> kept_;
  int kept_round_ = 0;
};

}  // namespace drun::launcher
