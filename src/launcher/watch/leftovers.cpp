#include "launcher/watch/leftovers.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/duration_text.hpp"
#include "facts/gather.hpp"
#include "launcher/look/child_output.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using process::SharedMemory;

// Between two looks of a round: more and more, since most files are made at its start, and a look
// at many processes has its price.
constexpr std::chrono::seconds kFirstPause{2};
constexpr std::chrono::seconds kLongestPause{60};
// A look or sweep that takes longer hangs in a thread that is left behind; nobody looks any more.
constexpr std::chrono::seconds kWorkLimit{5};
constexpr std::chrono::seconds kHoldLimit{1};
constexpr std::size_t kMostNames = 3;
constexpr std::chrono::seconds kGpuLimit{10};
// To start, and to wake a driver that sleeps.
constexpr std::chrono::seconds kHelperMargin{5};
constexpr std::chrono::seconds kWorthALine{1};

bool keeps_all(const std::vector<std::string>& keep) {
  return std::find(keep.begin(), keep.end(), "*") != keep.end();
}

// In a thread that may wait.
GpuAnswer ask_gpus(const GpuQuestion& question) {
  about_to("ask the GPUs' driver");
  ChildProgram helper;
  helper.path = "/proc/self/exe";
  helper.arguments = {"drun", std::string(kGpuHelperFlag)};
  helper.input = encode(question);
  helper.own_group = true;
  const auto said = output_of(helper, Clock::now() + question.limit + kHelperMargin);
  return said ? decode_gpu_answer(*said).value_or(GpuAnswer{}) : GpuAnswer{};
}

}  // namespace

// Of the threads that work, one after the other.
struct Leftovers::Shared {
  explicit Shared(std::vector<std::string> keep) : memory(std::move(keep)) {}

  // Nothing while a look or sweep hangs, which is left behind with what it uses.
  template <typename Work>
  auto alone(Work work) -> decltype(work(std::declval<SharedMemory&>())) {
    if (used.exchange(true)) return {};
    auto result = work(memory);
    used = false;
    return result;
  }

  SharedMemory memory;
  std::atomic<bool> used{false};
};

Leftovers::Leftovers(asio::io_context& io, const std::vector<std::string>& keep, bool restarts,
                     FileWork& files, Calls calls)
    : io_(io),
      files_(files),
      calls_(std::move(calls)),
      memory_(keeps_all(keep) ? nullptr : std::make_shared<Shared>(keep)),
      gpus_(restarts ? Gpus::Unknown : Gpus::None),
      timer_(io, [this] { on_timer(); }) {}

FileDesk& Leftovers::desk() {
  if (!desk_) desk_.emplace(io_, [this] { calls_.resumed(); });
  return *desk_;
}

std::optional<Leftovers::Time> Leftovers::begin(Time now, std::function<void()> over) {
  if (memory_ && !std::exchange(begun_, true))
    files_.run(
        kWorkLimit, [shared = memory_] { shared->memory.begin(); },
        [this](const std::optional<Error>& failed) { ready_ = !failed; });
  if (gpus_ == Gpus::There && !gone_.empty()) await_gpus();
  // Without a file that is known to be theirs, hardly anything is removed.
  if (!awaiting_ && (!sweeping_ || known_ == 0)) return std::nullopt;
  over_ = std::move(over);
  return now + (awaiting_ ? kGpuLimit + kHelperMargin : kHoldLimit);
}

void Leftovers::go_on() {
  if (sweeping_ || awaiting_) return;
  if (const auto over = std::exchange(over_, nullptr)) over();
}

// The answer is the same for the whole job. A round that ends before it is known had no time to use
// them.
void Leftovers::ask_about_gpus() {
  if (gpus_ != Gpus::Unknown || std::exchange(asking_, true)) return;
  desk().ask<GpuAnswer>(
      kHelperMargin * 2, [] { return ask_gpus({}); },
      [this](const Result<GpuAnswer>& answer) {
        gpus_ = answer && answer->can_tell ? Gpus::There : Gpus::None;
      });
}

void Leftovers::await_gpus() {
  awaiting_ = true;
  GpuQuestion question;
  question.gone.assign(gone_.begin(), gone_.end());
  question.limit = kGpuLimit;
  gone_.clear();
  desk().ask<GpuAnswer>(
      kGpuLimit + kHelperMargin * 2, [question] { return ask_gpus(question); },
      [this, since = Clock::now()](const Result<GpuAnswer>& answer) { on_gpus(answer, since); });
}

void Leftovers::on_gpus(const Result<GpuAnswer>& answer, Time since) {
  awaiting_ = false;
  const auto waited = Clock::now() - since;
  if (!answer || !answer->can_tell) {  // it hangs, or has gone
    gpus_ = Gpus::None;
    calls_.status.warn(
        "the GPUs' driver does not say any more whether it has given back the memory of the last "
        "round; the new workers start, and nobody waits for it again");
  } else if (answer->gpu >= 0) {
    calls_.status.warn(
        "GPU " + std::to_string(answer->gpu) + " has not given back the memory of process " +
        std::to_string(answer->pid) + " of the last round within " +
        describe_duration(Milliseconds(kGpuLimit).count()) + "; the new workers start without it");
  } else if (waited >= kWorthALine) {
    calls_.status.inform(
        "waited " + describe_duration(std::chrono::duration_cast<Milliseconds>(waited).count()) +
        " until the GPUs had given back the memory of the last round");
  }
  go_on();
}

void Leftovers::on_workers(const WorkerNews& news) {
  if (news.group.started) {
    running_ = true;
    gone_.clear();
    pause_ = kFirstPause;
    look_later();
  }
  // Of those that are about to be killed: this is the last moment at which they can be asked.
  if (news.group.failure || news.grace_begins) look();
  if (!news.group.stopped && !news.swept) return;
  running_ = false;
  timer_.set(std::nullopt);
  for (const auto& [id, worker] : calls_.group().workers())
    if (worker.pid > 0) gone_.insert(worker.pid);
  if (!all_ended_well()) sweep();
}

// Then their libraries had the time to remove what is theirs, and what is left may be meant for
// somebody.
bool Leftovers::all_ended_well() const {
  const auto& workers = calls_.group().workers();
  return std::all_of(workers.begin(), workers.end(), [](const auto& each) {
    return each.second.stage == Worker::Stage::Ended && each.second.end.success();
  });
}

void Leftovers::on_timer() {
  ask_about_gpus();
  look();
}

void Leftovers::look_later() {
  if (!running_) return;
  timer_.set(Clock::now() + pause_);
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Leftovers::look() {
  if (!memory_ || !ready_ || looking_ || sweeping_) return;
  looking_ = true;
  desk().ask<Look>(
      kWorkLimit,
      [shared = memory_, root = ::getpid(), gpus = gpus_ == Gpus::There] {
        about_to("look for the workers' files in /dev/shm");
        return shared->alone([&](SharedMemory& memory) {
          return Look{memory.look(root),
                      gpus ? process::descendants_of(root) : std::vector<pid_t>()};
        });
      },
      [this](const Result<Look>& look) {
        looking_ = false;
        if (!look) return memory_.reset();
        known_ = look->known;
        gone_.insert(look->processes.begin(), look->processes.end());
        look_later();
      });
}

void Leftovers::sweep() {
  if (!memory_ || !ready_ || sweeping_ || (known_ == 0 && !looking_)) return;
  sweeping_ = true;
  desk().ask<SharedMemory::Swept>(
      kWorkLimit,
      [shared = memory_] {
        about_to("remove the workers' files in /dev/shm");
        return shared->alone([](SharedMemory& memory) { return memory.sweep(); });
      },
      [this](const Result<SharedMemory::Swept>& swept) {
        sweeping_ = false;
        if (swept) {
          on_swept(*swept);
        } else {
          memory_.reset();
        }
        go_on();
      });
}

void Leftovers::on_swept(const SharedMemory::Swept& swept) const {
  if (swept.names.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(swept.names.size(), kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + swept.names[i];
  if (swept.names.size() > kMostNames) names += ", ...";
  const std::size_t count = swept.names.size();
  calls_.status.inform("removed " + std::to_string(count) + (count == 1 ? " file (" : " files (") +
                       facts::size_text(swept.bytes) +
                       ") that the workers left in /dev/shm: " + names);
}

void Leftovers::cancel() {
  timer_.set(std::nullopt);
  over_ = nullptr;
  if (desk_) desk_->cancel();
}

void Leftovers::finish() {
  // A wait for GPUs would be waited for, too.
  if (desk_ && sweeping_ && !awaiting_) desk_->wait_for_all();
}

}  // namespace drun::launcher
