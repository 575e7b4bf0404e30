#include "launcher/job_stacks/stack_desk.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "stacks/stack_report.hpp"
#include "stacks/stack_text.hpp"

namespace drun::launcher {
namespace {

// Beyond what take_stacks() takes itself.
constexpr std::chrono::seconds kHangs{20};

// As work whose errors are thrown.
std::string taken(const StackDesk::Look& look, const LookRequest& request, ChildStop& stop) {
  auto report = look(request, stop);
  if (!report) throw ResultError(report.error());
  return std::move(*report);
}

StackDesk::Described described(const std::string& report, const StackDesk::Save& save) {
  const auto parsed = stacks::parse_report(report);
  if (!parsed) return {parsed.error().what() + "\n"};
  StackDesk::Described result{text_of(*parsed)};
  if (!save) return result;
  stacks::TextOptions whole;
  whole.all = true;
  try {
    result.file = save(text_of(*parsed, whole), report);
    if (!result.file.empty()) result.text += "\nall stacks: " + result.file + "\n";
  } catch (const std::exception& failed) {
    result.text += std::string(failed.what()) + "\n";
  }
  return result;
}

// As work whose errors are thrown.
std::string cut(const std::string& report, std::size_t longest) {
  auto parsed = stacks::parse_report(report);
  if (!parsed) throw ResultError(parsed.error());
  return stacks::to_json_within(std::move(*parsed), longest);
}

}  // namespace

LookRequest look_request(const WorkerGroup& group, const WorkerOutput& output,
                         const std::string& host, WorkerGroup::Time now) {
  using std::chrono::milliseconds;
  LookRequest request;
  request.round = group.assignment().round;
  const int first = group.assignment().first_rank;
  const auto count = static_cast<int>(group.workers().size());
  request.node = {host, {first, first + std::max(count, 1) - 1}};
  for (const auto& [id, worker] : group.workers()) {
    LookRequest::Worker entry;
    entry.rank = first + worker.local_rank;
    if (worker.stage == Worker::Stage::Running) {
      entry.pid = worker.pid;
      const auto last = output.last_output(id);
      entry.never_printed = last == Output::Time::min();
      if (last && !entry.never_printed)
        entry.silence =
            std::chrono::duration_cast<milliseconds>(now - std::max(*last, worker.started));
    }
    request.workers.push_back(entry);
  }
  return request;
}

void StackDesk::take(const StackWish& wish, Done done) {
  if (wish.last && kept_ && kept_round_ == request_().round)
    return give(*kept_, wish.longest, done);
  Waiting& waiting = waiting_[wish.unwind ? 1 : 0];
  waiting.keep |= wish.keep;
  waiting.each.push_back({std::move(done), wish.longest});
  if (waiting.each.size() == 1) begin(wish);
}

// At once, if it is not too long.
void StackDesk::give(const std::string& report, std::size_t longest, const Done& done) {
  if (report.size() <= longest) return done(report);
  thread().ask<std::string>(
      kHangs, [report, longest] { return cut(report, longest); }, done);
}

void StackDesk::begin(const StackWish& wish) {
  LookRequest request = request_();
  request.unwind = wish.unwind;
  request.all = std::min(request.all, wish.limit);
  request.each = std::min(request.each, wish.limit);
  request.longest = wish.longest;
  if (held_) held_(true);
  // One each: a look that hangs is left behind.
  looks_.push_back(std::make_shared<ChildStop>());
  thread().ask<std::string>(
      request.all + kHangs,
      [look = look_, request, stop = looks_.back()] { return taken(look, request, *stop); },
      [this, unwind = wish.unwind, round = request.round,
       stop = looks_.back()](const Result<std::string>& report) {
        looks_.erase(std::find(looks_.begin(), looks_.end(), stop));
        if (held_) held_(false);
        // Whoever asks from inside of these begins another one.
        const auto waiting = std::exchange(waiting_[unwind ? 1 : 0], {});
        if (report && waiting.keep) {
          kept_ = *report;
          kept_round_ = round;
        }
        for (const auto& [done, longest] : waiting.each) {
          if (!report) {
            done(report);
          } else {
            give(*report, longest, done);
          }
        }
      });
}

void StackDesk::describe(std::string report, Save save,
                         std::function<void(const Described&)> done) {
  thread().ask<Described>(
      kHangs,
      [report = std::move(report), save = std::move(save)] { return described(report, save); },
      [done = std::move(done)](const Result<Described>& found) {
        done(found ? *found : Described{found.error().what() + "\n"});
      });
}

void StackDesk::find_frames(std::string report, std::function<void(const Frames&)> done) {
  thread().ask<Frames>(
      kHangs,
      [report = std::move(report)] {
        const auto parsed = stacks::parse_report(report);
        return parsed ? telling_frames(*parsed) : Frames();
      },
      [done = std::move(done)](const Result<Frames>& found) { done(found ? *found : Frames()); });
}

FileDesk& StackDesk::thread() {
  if (!thread_) thread_.emplace(io_, [] {});
  return *thread_;
}

void StackDesk::cancel() {
  if (thread_) thread_->cancel();
  for (const auto& look : looks_)
    look->stop();
  for (auto& waiting : waiting_)
    waiting = {};
}

}  // namespace drun::launcher
