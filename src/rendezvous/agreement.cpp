#include "rendezvous/agreement.hpp"

#include <cstddef>
#include <set>
#include <utility>

#include "base/duration_text.hpp"
#include "rendezvous/documents.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::size_t kMaxFields = 4;  // of a disagreement
constexpr const char* kProtocol = "protocol";
constexpr const char* kUnlimited = "unlimited";
constexpr const char* kEndpoints = "rdzv-endpoint";  // if there are several
constexpr const char* kNodes = "nnodes";
constexpr const char* kConf = "rdzv-conf";  // a job of one node has other defaults

// As the flags that the user gave, or would give for it: each field but one is named after its
// flag.
std::string in_flags(const std::map<std::string, std::string>& fields, const std::string& name) {
  const std::string flag = name == kProtocol ? name : "--" + name;
  const auto field = fields.find(name);
  if (field == fields.end() && name == kEndpoints) return "one " + flag;
  if (field == fields.end() || field->second == kUnlimited) return "no " + flag;
  return flag + " " + field->second.substr(0, 128);
}

}  // namespace

std::map<std::string, std::string> full_agreement(const Config& config) {
  auto agreement = config.agreement;
  agreement.emplace(kProtocol, std::to_string(kProtocolVersion));
  std::string nodes = std::to_string(config.min_nodes);
  if (config.min_nodes != config.max_nodes) nodes += ":" + std::to_string(config.max_nodes);
  // Of a job of one size a step says nothing.
  if (config.min_nodes != config.max_nodes && config.node_step > 1)
    nodes += ":" + std::to_string(config.node_step);
  agreement.emplace(kNodes, std::move(nodes));
  agreement.emplace("max-restarts", std::to_string(config.max_restarts));
  agreement.emplace("max-losses",
                    config.max_losses ? std::to_string(*config.max_losses) : kUnlimited);
  if (config.min_runtime > Milliseconds(0))
    agreement.emplace("min-runtime", exact_duration(config.min_runtime, ""));
  if (config.hang_timeout > Milliseconds(0))
    agreement.emplace("hang-timeout", exact_duration(config.hang_timeout, ""));
  constexpr const char* kOrders[] = {"keep", "host", "join", "topology"};
  agreement.emplace("rank-order", kOrders[static_cast<std::size_t>(config.rank_order)]);
  agreement.emplace("resize", config.resize == Resize::Now ? "now" : "restart");
  return agreement;
}

std::string disagreement(const std::string& who,
                         const std::map<std::string, std::string>& agreement,
                         const std::map<std::string, std::string>& job) {
  std::set<std::string> names;
  for (const auto& [name, value] : agreement)
    names.insert(name);
  for (const auto& [name, value] : job)
    names.insert(name);
  const auto differs = [&](const std::string& name) {
    const auto mine = agreement.find(name);
    const auto theirs = job.find(name);
    return mine == agreement.end() || theirs == job.end() || mine->second != theirs->second;
  };
  // A node without --nnodes has other defaults of --rdzv-conf, too: naming a flag that nobody may
  // have given would only confuse.
  if (names.contains(kNodes) && differs(kNodes)) names.erase(kConf);
  std::string said;
  std::string wanted;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (!differs(name)) continue;
    if (shown++ == kMaxFields) {
      said += ", ...";
      wanted += ", ...";
      break;
    }
    said += (shown == 1 ? "" : ", ") + in_flags(agreement, name);
    wanted += (shown == 1 ? "" : ", ") + in_flags(job, name);
  }
  if (shown == 0) return "";
  return who + " has " + said + "; the job has " + wanted + "; give all nodes the same";
}

}  // namespace drun::rendezvous
