// Every worker tells its number to all others, through the workers' store: an all-gather.
//
//   drun --nproc-per-node 4 allgather
#include <iostream>
#include <sstream>

#include <drun/store/client.hpp>
#include <drun/worker.hpp>

int main() try {
  const drun::Worker me = drun::worker().value();
  auto store = drun::store::Client::connect().value();
  const std::vector<int> all = store.exchange(me.rank, me.world_size, me.rank * me.rank).value();
  std::ostringstream line;
  line << "rank " << me.rank << " of " << me.world_size << " got";
  for (const int number : all)
    line << " " << number;
  std::cout << line.str() + "\n" << std::flush;
} catch (const std::exception& error) {
  std::cerr << "allgather: " << error.what() << "\n";
  return 1;
}
