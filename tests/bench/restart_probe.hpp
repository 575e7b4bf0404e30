// How long after the SIGKILL of a worker its successor runs, under any launcher that restarts.
#pragma once

#include <string>
#include <vector>

namespace drun::bench {

// Runs `launcher` (without its program) with `workers` workers, kills one of them when all run, and
// waits for the job to end. The time from just before the kill to the first instruction of the
// worker of the same local rank in the next round. Throws std::runtime_error where that never
// comes.
[[nodiscard]] double restart_milliseconds(std::vector<std::string> launcher, int workers);

// The program that the launcher is given is this very one, which must be asked first in main().
[[nodiscard]] bool is_restart_worker(int argc, char** argv);
int run_restart_worker(char** argv);

}  // namespace drun::bench
