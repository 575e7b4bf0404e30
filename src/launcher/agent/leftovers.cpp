#include "launcher/agent/leftovers.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "facts/gather.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using process::SharedMemory;

// Between two looks of a round: more and more, since most files are made at its start, and a look
// at many processes has its price.
constexpr std::chrono::seconds kFirstPause{2};
constexpr std::chrono::seconds kLongestPause{60};
// A look or sweep that takes longer hangs in a thread that is left behind; nobody looks any more.
constexpr std::chrono::seconds kWorkLimit{5};
constexpr std::chrono::seconds kHoldLimit{1};
constexpr std::size_t kMostNames = 3;

bool keeps_all(const std::vector<std::string>& keep) {
  return std::find(keep.begin(), keep.end(), "*") != keep.end();
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

Leftovers::Leftovers(asio::io_context& io, const std::vector<std::string>& keep, FileWork& files,
                     Calls calls)
    : io_(io),
      files_(files),
      calls_(std::move(calls)),
      memory_(keeps_all(keep) ? nullptr : std::make_shared<Shared>(keep)),
      timer_(io, [this] { look(); }) {}

FileDesk& Leftovers::desk() {
  if (!desk_) desk_.emplace(io_, [this] { calls_.resumed(); });
  return *desk_;
}

std::optional<Leftovers::Time> Leftovers::begin(Time now, std::function<void()> over) {
  if (memory_ && !std::exchange(begun_, true))
    files_.run(
        kWorkLimit, [shared = memory_] { shared->memory.begin(); },
        [this](const std::optional<Error>& failed) { ready_ = !failed; });
  if (!sweeping_) return std::nullopt;
  over_ = std::move(over);
  return now + kHoldLimit;
}

void Leftovers::on_workers(const WorkerNews& news) {
  if (news.group.started) {
    running_ = true;
    pause_ = kFirstPause;
    look_later();
  }
  // Of those that are about to be killed: this is the last moment at which they can be asked.
  if (news.group.failure || news.grace_begins) look();
  if (!news.group.stopped && !news.swept) return;
  running_ = false;
  timer_.set(std::nullopt);
  sweep();
}

void Leftovers::look_later() {
  if (!memory_ || !running_) return;
  timer_.set(Clock::now() + pause_);
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Leftovers::look() {
  if (!memory_ || !ready_ || looking_ || sweeping_) return;
  looking_ = true;
  desk().ask<std::size_t>(
      kWorkLimit,
      [shared = memory_, root = ::getpid()] {
        about_to("look for the workers' files in /dev/shm");
        return shared->alone([root](SharedMemory& memory) { return memory.look(root); });
      },
      [this](const Result<std::size_t>& known) {
        looking_ = false;
        if (!known) return memory_.reset();
        known_ = *known;
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
        if (const auto over = std::exchange(over_, nullptr)) over();
      });
}

void Leftovers::on_swept(const SharedMemory::Swept& swept) const {
  if (swept.names.empty() || !told_) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(swept.names.size(), kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + swept.names[i];
  if (swept.names.size() > kMostNames) names += ", ...";
  const std::size_t count = swept.names.size();
  calls_.say("removed " + std::to_string(count) + (count == 1 ? " file (" : " files (") +
             facts::size_text(swept.bytes) + ") that the workers left in /dev/shm: " + names);
}

void Leftovers::cancel() {
  timer_.set(std::nullopt);
  if (desk_) desk_->cancel();
}

void Leftovers::finish() {
  told_ = false;  // the output is gone
  if (desk_ && sweeping_) desk_->wait_for_all();
}

}  // namespace drun::launcher
