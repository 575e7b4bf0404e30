#include "launcher/leaving/parent_shutdown.hpp"

#include <chrono>
#include <utility>

#include "launcher/process/exit_status.hpp"

namespace drun::launcher {

ParentShutdown::ParentShutdown(asio::io_context& io, FlushTarget output, Calls calls)
    : calls_(std::move(calls)), flush_(io, std::move(output)) {}

std::optional<StopLevel> ParentShutdown::on_stop_signal(int signal) {
  const auto level = requests_.count(signal, std::chrono::steady_clock::now());
  if (level) perform(fsm_.on_stop(*level, signal));
  return level;
}

void ParentShutdown::on_outcome(int exit_code) {
  perform(fsm_.on_outcome(exit_code, Owed::None));
}

void ParentShutdown::on_swept() {
  perform(fsm_.on_swept());
}

void ParentShutdown::perform(const ShutdownFsm::Steps& steps) {
  for (const auto step : steps)
    perform(step);
}

void ParentShutdown::perform(ShutdownFsm::Step step) {
  using enum ShutdownFsm::Step;
  switch (step) {
    case Sweep:
      return calls_.sweep();
    case Report:  // each agent has told what it knows
      return perform(fsm_.on_reported());
    case Leave:
      calls_.leave();
      return flush_.start(fsm_.exit_code(), requests_.any(),
                          [this](bool lost) { perform(fsm_.on_flushed(lost)); });
    case GiveUpReader:
      return flush_.give_up("received " + process::signal_name(fsm_.signal()));
    case End:
      return calls_.gone();
    case StopJob:
    case KillWorkers:
    case GiveUpWorkers:
    case GiveUpReport:
    case ServeOthers:
    case SayGoodbye:
      return;  // the agents' own
  }
}

}  // namespace drun::launcher
