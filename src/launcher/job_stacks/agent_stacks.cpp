#include "launcher/job_stacks/agent_stacks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/log.hpp"
#include "base/log_name.hpp"
#include "base/printable.hpp"
#include "stacks/job_look.hpp"

namespace drun::launcher {

AgentStacks::AgentStacks(Parts parts)
    : parts_(std::move(parts)),
      desk_(
          parts_.io,
          [this] {
            return look_request(parts_.group(), parts_.worker_output, parts_.host_name,
                                std::chrono::steady_clock::now());
          },
          parts_.look, parts_.held),
      job_(parts_.io, desk_, parts_.options.run_id, [this] { return parts_.group().round(); }),
      last_look_({parts_.io, parts_.options,
                  [this](const StackWish& wish, StackDesk::Done done) {
                    desk_.take(wish, std::move(done));
                  },
                  [this](const StackWish& wish, int nodes, StackDesk::Done done) {
                    job_.ask(wish, nodes, std::move(done));
                  },
                  parts_.group,
                  [this](const auto& report, auto shown) { show(report, std::move(shown)); },
                  parts_.resumed}) {}

int AgentStacks::nodes_of_round() const {
  const WorkerGroup& group = parts_.group();
  return group.has_workers() ? group.assignment().group_world_size : 1;
}

void AgentStacks::show(Whose whose) {
  if (!parts_.group().has_workers()) return log::info("received SIGQUIT: no worker runs here now");
  job_.ask(StackWish(), whose == Whose::OfJob ? nodes_of_round() : 1,
           [this](const Result<std::string>& report) { show(report, nullptr); });
}

// `shown` may be empty.
void AgentStacks::show(const Result<std::string>& report, std::function<void()> shown) {
  if (!report) {
    log::warning("no stacks: {}", report.error().what());
    if (shown) shown();
    return;
  }
  const auto save = [files = parts_.output.files(), name = "stacks_" + std::to_string(++shown_)](
                        const std::string& text, const std::string& json) {
    std::string path = files->write(name + ".txt", text);
    (void)files->write(name + ".json", json + "\n");
    return path;
  };
  desk_.describe(*report, save, [this, shown = std::move(shown)](const auto& described) {
    if (!described.file.empty()) files_.push_back(described.file);
    parts_.status.line().clear();
    parts_.status.say(log::own_name() + ": " + described.text);
    if (shown) shown();
  });
}

void AgentStacks::answer(bool whole_job, bool unwind,
                         const std::function<void(const std::string& text)>& say) {
  StackWish wish;
  wish.unwind = unwind;
  job_.ask(wish, whole_job ? nodes_of_round() : 1, [say](const Result<std::string>& report) {
    say(report ? *report : "error: " + report.error().what() + "\n");
  });
}

void AgentStacks::tell(std::function<void(const Result<std::string>& text)> done) {
  if (!parts_.group().has_workers())
    return done(Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                      "no worker runs on this node now"));
  job_.ask(StackWish(), nodes_of_round(),
           [this, done = std::move(done)](const Result<std::string>& report) {
             if (!report) return done(report.error());
             desk_.describe(*report, {}, [this, done](const auto& described) {
               done("job " + escaped(parts_.options.run_id) + ": " + described.text);
             });
           });
}

std::chrono::milliseconds AgentStacks::frames_limit() const {
  // To start the helper and to hear what it has found.
  constexpr std::chrono::milliseconds kMargin{5'000};
  const auto limit = parts_.options.stacks_limit;
  return limit.count() == 0 ? limit : std::min(limit, StackWish::kLimit) + kMargin;
}

void AgentStacks::add_frames(std::vector<WaitingRank> waiting,
                             std::function<void(const std::vector<WaitingRank>&)> done) {
  if (parts_.options.stacks_limit.count() == 0) return done(waiting);
  StackWish wish;
  // As the look before the stop, for which other nodes may wait by then.
  wish.limit = std::min(parts_.options.stacks_limit * 4 / 5, StackWish::kLimit);
  wish.keep = true;
  desk_.take(wish, [this, waiting = std::move(waiting),
                    done = std::move(done)](const Result<std::string>& report) {
    if (!report) return done(waiting);
    desk_.find_frames(*report, [waiting, done, first = parts_.group().assignment().first_rank](
                                   const StackDesk::Frames& frames) {
      auto found = waiting;
      for (WaitingRank& rank : found) {
        const auto frame = frames.find(first + rank.local_rank);
        if (frame == frames.end()) continue;
        rank.frame = frame->second.text;
        rank.for_ranks = frame->second.waits_for_ranks;
        rank.for_gpu = frame->second.waits_for_gpu;
      }
      done(found);
    });
  });
}

void AgentStacks::cancel() {
  last_look_.cancel();
  job_.cancel();
  desk_.cancel();
}

}  // namespace drun::launcher
