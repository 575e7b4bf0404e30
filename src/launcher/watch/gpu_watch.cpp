#include "launcher/watch/gpu_watch.hpp"

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/file_worker.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The driver may have to wake the devices first.
constexpr milliseconds kFirstAnswer{30'000};
constexpr milliseconds kAnswer{10'000};
constexpr milliseconds kAskMargin{2'000};

// In a thread that may wait.
GpuSample ask_helper(ChildTalk& helper, const std::string& question, milliseconds limit) {
  about_to("ask the GPUs' driver");
  const auto said = helper.ask(question, Clock::now() + limit);
  const auto sample = said ? decode_gpu_sample(*said) : std::nullopt;
  if (sample && sample->can_tell) return *sample;
  helper.stop();
  return {};
}

}  // namespace

ChildProgram GpuWatch::own_helper() {
  ChildProgram helper;
  helper.path = "/proc/self/exe";
  helper.arguments = {"drun", std::string(kGpuUsageFlag)};
  helper.own_group = true;
  return helper;
}

GpuWatch::GpuWatch(Parts parts, bool wanted, const ChildProgram& helper)
    : parts_(std::move(parts)),
      wanted_(wanted),
      helper_(std::make_shared<ChildTalk>(helper)),
      next_(parts_.io, [this] { on_time(); }),
      limit_(parts_.io, [this] { answer(); }) {}

void GpuWatch::on_workers(const GroupNews& news) {
  if (news.started && wanted_ && !over_) next_.set(Clock::now() + kFirst);
}

void GpuWatch::on_time() {
  const WorkerGroup& group = parts_.group();
  if (over_ || asking_ || !group.has_workers()) return;
  std::vector<pid_t> workers;
  for (const auto& [id, worker] : group.workers())
    if (worker.stage == Worker::Stage::Running) workers.push_back(worker.pid);
  if (workers.empty()) return answer();
  asking_ = true;
  if (!desk_) desk_.emplace(parts_.io, [] {});
  const milliseconds limit = answered_ ? kAnswer : kFirstAnswer;
  desk_->ask<GpuSample>(
      limit + kAskMargin,
      [helper = helper_, question = encode_gpu_question(workers), limit] {
        return ask_helper(*helper, question, limit);
      },
      [this, round = group.round()](const Result<GpuSample>& sample) { on_sample(round, sample); });
}

void GpuWatch::on_sample(int round, const Result<GpuSample>& sample) {
  asking_ = false;
  answered_ = true;
  over_ = !sample || !sample->can_tell;
  if (!over_) {
    parts_.ledger.note(round, *sample);
    sampled_ = round;
    next_.set(Clock::now() + kPeriod);
  }
  answer();
}

void GpuWatch::sample(std::function<void()> done) {
  const WorkerGroup& group = parts_.group();
  if (over_ || !group.has_workers() || sampled_ == group.round()) return done();
  wanted_ = true;
  if (waiting_.empty()) limit_.set(Clock::now() + kSampleLimit);
  waiting_.push_back(std::move(done));
  on_time();
}

void GpuWatch::answer() {
  limit_.set(std::nullopt);
  for (const auto& done : std::exchange(waiting_, {}))
    done();
}

void GpuWatch::cancel() {
  over_ = true;
  next_.set(std::nullopt);
  limit_.set(std::nullopt);
  waiting_.clear();
  if (desk_) desk_->cancel();
  helper_->begin_to_stop();  // it may hang in its driver
}

}  // namespace drun::launcher
