#include "launcher/services/pmi_space.hpp"

#include <cctype>
#include <cstddef>

#include "launcher/pmi/pmi_node.hpp"

namespace drun::launcher {

std::string pmi_space(const std::string& run_id, const rendezvous::Assignment& assignment) {
  std::string result = "drun_" + run_id + "_" + assignment.master_address + "_" +
                       std::to_string(assignment.master_port) + "_" +
                       std::to_string(assignment.round);
  for (char& each : result)
    if (std::isalnum(static_cast<unsigned char>(each)) == 0) each = '_';
  constexpr std::size_t kLongest = pmi::kLongestSpace / 2;
  return result.size() > kLongest ? result.substr(result.size() - kLongest) : result;
}

}  // namespace drun::launcher
