// Computes pi together: the area under 4 / (1 + x^2) from 0 to 1 in a million strips, dealt out to
// the workers like cards. The strips' areas are put together by an all-reduce over sockets; the
// workers find one another through drun's store.
//
//   drun --nproc-per-node 4 allreduce
//   drun --nnodes 2 --nproc-per-node 4 --rdzv-endpoint HOST:29500 allreduce    (on two machines)
#include <chrono>
#include <cmath>
#include <exception>
#include <iomanip>
#include <iostream>
#include <numbers>
#include <numeric>
#include <sstream>
#include <vector>

#include "drun/store/client.hpp"
#include "drun/worker.hpp"
#include "ring.hpp"

namespace {

constexpr int kStrips = 1'000'000;
constexpr std::chrono::seconds kTimeout{60};

double area_of_strip(int strip) {
  const double x = (strip + 0.5) / kStrips;
  return 4 / (1 + x * x) / kStrips;
}

int run() {
  const drun::Worker me = drun::worker().value();
  auto store = drun::store::Client::connect(kTimeout).value();
  allreduce::Ring ring(store, me.rank, me.world_size, kTimeout);

  std::vector<double> strips(kStrips, 0.0);
  for (int strip = me.rank; strip < kStrips; strip += me.world_size)
    strips[static_cast<std::size_t>(strip)] = area_of_strip(strip);
  const double mine = std::accumulate(strips.begin(), strips.end(), 0.0);
  ring.all_reduce(strips);
  const double pi = std::accumulate(strips.begin(), strips.end(), 0.0);

  // One write for each line, so that lines stay whole also without drun.
  std::ostringstream line;
  line << std::setprecision(12) << "rank " << me.rank << " of " << me.world_size << ", node "
       << me.group_rank << ": my strips add up to " << mine << "\n";
  if (me.rank == 0) {
    line << "pi = " << pi << ", computed by " << me.world_size << " workers on "
         << me.group_world_size << " node(s)\n";
  }
  std::cout << line.str() << std::flush;
  return std::abs(pi - std::numbers::pi) < 1e-9 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << "allreduce: " << error.what() << "\n";
    return 1;
  }
}
