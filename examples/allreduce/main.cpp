// Computes pi together: the area under 4 / (1 + x^2) from 0 to 1 in a million strips, dealt out to
// the workers like cards. The strips' areas are put together by an all-reduce over sockets; the
// workers find one another through drun's store.
//
//   drun --nproc-per-node 4 allreduce
//   drun --nnodes 2 --nproc-per-node 4 --rdzv-endpoint HOST:29500 allreduce    (on two machines)
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <numbers>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "drun/store/client.hpp"
#include "ring.hpp"

namespace {

constexpr int kStrips = 1'000'000;
constexpr std::chrono::seconds kTimeout{60};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string(name) + " is not set: start me with drun");
  return value;
}

double area_of_strip(int strip) {
  const double x = (strip + 0.5) / kStrips;
  return 4 / (1 + x * x) / kStrips;
}

int run() {
  const int rank = std::stoi(variable("RANK"));
  const int size = std::stoi(variable("WORLD_SIZE"));
  const drun::Endpoint master{variable("MASTER_ADDR"),
                              static_cast<std::uint16_t>(std::stoi(variable("MASTER_PORT")))};

  auto store = drun::store::Client::connect(master, std::chrono::steady_clock::now() + kTimeout);
  if (!store) throw std::runtime_error(store.error().what());
  allreduce::Ring ring(*store, rank, size, kTimeout);

  std::vector<double> strips(kStrips, 0.0);
  for (int strip = rank; strip < kStrips; strip += size)
    strips[static_cast<std::size_t>(strip)] = area_of_strip(strip);
  const double mine = std::accumulate(strips.begin(), strips.end(), 0.0);
  ring.all_reduce(strips);
  const double pi = std::accumulate(strips.begin(), strips.end(), 0.0);

  // One write for each line, so that lines stay whole also without drun.
  std::ostringstream line;
  line << std::setprecision(12) << "rank " << rank << " of " << size << ", node "
       << variable("GROUP_RANK") << ": my strips add up to " << mine << "\n";
  if (rank == 0) {
    line << "pi = " << pi << ", computed by " << size << " workers on "
         << variable("GROUP_WORLD_SIZE") << " node(s)\n";
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
