#include "launcher/watch/leftovers.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "launcher/look/child_output.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/shared_memory.hpp"
#include "launcher/watch/leftovers_text.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Fsm = LeftoversFsm;
using process::SharedMemory;
using std::chrono::milliseconds;

// A look or sweep that takes longer hangs in a thread that is left behind.
constexpr std::chrono::seconds kWorkLimit{5};

bool keeps_all(const std::vector<std::string>& keep) {
  return std::find(keep.begin(), keep.end(), "*") != keep.end();
}

bool all_ended_well(const Workers& workers) {
  return std::all_of(workers.begin(), workers.end(), [](const auto& each) {
    return each.second.stage == Worker::Stage::Ended && each.second.end.success();
  });
}

// In a thread that may wait.
GpuAnswer ask_gpus(const GpuQuestion& question, ChildStop& stop) {
  about_to("ask the GPUs' driver");
  ChildProgram helper;
  helper.path = "/proc/self/exe";
  helper.arguments = {"drun", std::string(kGpuHelperFlag)};
  helper.input = encode(question);
  helper.own_group = true;
  const auto said = output_of(helper, Clock::now() + question.limit + Fsm::kHelperMargin, stop);
  return said ? decode_gpu_answer(*said).value_or(GpuAnswer{}) : GpuAnswer{};
}

}  // namespace

// Of the threads that work, one after the other.
struct Leftovers::Shared {
  Shared(std::vector<std::string> keep, std::string folder)
      : memory(std::move(keep), std::move(folder)) {}

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
                     FileWork& files, Calls calls, const std::string& folder)
    : io_(io),
      files_(files),
      calls_(std::move(calls)),
      memory_(std::make_shared<Shared>(keep, folder)),
      fsm_(keeps_all(keep), restarts),
      timer_(io, [this] {
        perform(fsm_.on_time(Clock::now()));
        timer_.set(fsm_.next_look());
      }) {}

FileDesk& Leftovers::desk() {
  if (!desk_) desk_.emplace(io_, [this] { calls_.resumed(); });
  return *desk_;
}

std::optional<Leftovers::Time> Leftovers::begin(Time now, std::function<void()> over) {
  perform(fsm_.on_round());
  const auto until = fsm_.held_until(now);
  if (until) over_ = std::move(over);
  return until;
}

void Leftovers::on_workers(const WorkerNews& news) {
  if (news.group.started) {
    fsm_.on_started(Clock::now());
    timer_.set(fsm_.next_look());
  }
  if (news.group.failure || news.grace_begins) perform(fsm_.on_doomed());
  if (!news.group.stopped && !news.swept) return;
  const Workers& workers = calls_.group().workers();
  std::vector<pid_t> gone;
  for (const auto& [id, worker] : workers)
    if (worker.pid > 0) gone.push_back(worker.pid);
  perform(fsm_.on_gone(gone, all_ended_well(workers)));
  timer_.set(fsm_.next_look());
}

void Leftovers::perform(const Fsm::Steps& steps) {
  for (const auto step : steps) {
    switch (step) {
      case Fsm::Step::NoteFiles:
        note_files();
        break;
      case Fsm::Step::Look:
        look();
        break;
      case Fsm::Step::Sweep:
        sweep();
        break;
      case Fsm::Step::AskAboutGpus:
        ask_about_gpus();
        break;
      case Fsm::Step::AwaitGpus:
        await_gpus();
        break;
      case Fsm::Step::GoOn:
        if (const auto over = std::exchange(over_, nullptr)) over();
        break;
    }
  }
}

void Leftovers::note_files() {
  files_.run(
      kWorkLimit, [shared = memory_] { shared->memory.begin(); },
      [this](const std::optional<Error>& failed) { fsm_.on_noted(!failed); });
}

void Leftovers::look() {
  desk().ask<Fsm::Seen>(
      kWorkLimit,
      [shared = memory_, root = ::getpid(), processes = fsm_.wants_processes()] {
        about_to("look for the workers' files in /dev/shm");
        return shared->alone([&](SharedMemory& memory) {
          return Fsm::Seen{memory.look(root),
                           processes ? process::descendants_of(root) : std::vector<pid_t>()};
        });
      },
      [this](Result<Fsm::Seen> seen) {
        fsm_.on_looked(seen ? std::optional(std::move(*seen)) : std::nullopt, Clock::now());
        timer_.set(fsm_.next_look());
      });
}

void Leftovers::sweep() {
  desk().ask<SharedMemory::Swept>(
      kWorkLimit,
      [shared = memory_] {
        about_to("remove the workers' files in /dev/shm");
        return shared->alone([](SharedMemory& memory) { return memory.sweep(); });
      },
      [this](const Result<SharedMemory::Swept>& swept) {
        const std::string text = swept ? swept_text(*swept) : "";
        if (!text.empty()) calls_.status.inform(text);
        perform(fsm_.on_swept(swept.ok()));
      });
}

void Leftovers::ask_about_gpus() {
  desk().ask<GpuAnswer>(
      Fsm::kHelperMargin * 2, [stop = gpu_helper_] { return ask_gpus({}, *stop); },
      [this](const Result<GpuAnswer>& answer) { fsm_.on_gpus_known(answer && answer->can_tell); });
}

void Leftovers::await_gpus() {
  GpuQuestion question;
  question.gone = fsm_.take_gone();
  question.limit = Fsm::kGpuLimit;
  desk().ask<GpuAnswer>(
      Fsm::kGpuLimit + Fsm::kHelperMargin * 2,
      [question, stop = gpu_helper_] { return ask_gpus(question, *stop); },
      [this, since = Clock::now()](const Result<GpuAnswer>& answer) {
        on_gpus(answer, std::chrono::duration_cast<milliseconds>(Clock::now() - since));
      });
}

void Leftovers::on_gpus(const Result<GpuAnswer>& answer, milliseconds waited) {
  const GpuAnswer said = answer ? *answer : GpuAnswer{};
  const GpuNote note = gpu_note(said, waited, Fsm::kGpuLimit);
  if (note.warns)
    calls_.status.warn(note.text);
  else if (!note.text.empty())
    calls_.status.inform(note.text);
  perform(fsm_.on_gpus_awaited(said.can_tell));
}

void Leftovers::cancel() {
  timer_.set(std::nullopt);
  over_ = nullptr;
  if (desk_) desk_->cancel();
  gpu_helper_->stop();
}

void Leftovers::finish() {
  // A wait for GPUs would be waited for, too.
  if (desk_ && fsm_.sweep_ends_soon()) desk_->wait_for_all();
}

}  // namespace drun::launcher
