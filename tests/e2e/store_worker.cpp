// A worker that looks whether the workers' store is empty at the start of its round, leaves a key
// there, and makes the first round fail once every worker of it has looked.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "drun/store/client.hpp"

namespace {

int number(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? -1 : std::atoi(value);
}

int fail(const std::string& why) {
  std::fprintf(stderr, "store_worker: %s\n", why.c_str());
  return 99;
}

}  // namespace

int main() {
  constexpr std::chrono::seconds kTimeout{120};
  const int rank = number("RANK");
  const int size = number("WORLD_SIZE");
  const int restarts = number("TORCHELASTIC_RESTART_COUNT");
  auto store = drun::store::Client::connect(
      {std::getenv("MASTER_ADDR"), static_cast<std::uint16_t>(number("MASTER_PORT"))},
      std::chrono::steady_clock::now() + kTimeout);
  if (!store) return fail(store.error().what());

  // A key of this round may be there already; one of the last round must not.
  auto left_over = store->check({"round/" + std::to_string(restarts - 1)});
  if (!left_over) return fail(left_over.error().what());
  std::printf("rank %d restart %d: %s\n", rank, restarts,
              *left_over ? "the last round's keys" : "empty at first");
  std::fflush(stdout);
  const std::string mine = "round/" + std::to_string(restarts);
  if (const auto done = store->set(mine, "here"); !done) return fail(done.error().what());
  if (const auto met = store->barrier("looked", size, kTimeout); !met)
    return fail(met.error().what());

  if (restarts > 0) return 0;
  if (rank == 0) return 3;
  // Wait for what never comes: drun ends this worker.
  (void)store->wait({"never"}, kTimeout);
  return 0;
}
