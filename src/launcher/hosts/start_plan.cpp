#include "launcher/hosts/start_plan.hpp"

#include "base/addresses.hpp"
#include "base/whole_number.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::launcher::hosts {

std::string meeting_place_at(const std::string& name, const Hello& hello,
                             const std::function<bool(const std::string& name)>& leads_others) {
  const std::string listed = name.substr(name.find('@') + 1);  // npos + 1: all of it
  const bool usable = !numeric_addresses(hello.address).empty() &&
                      hello.address.find('%') == std::string::npos &&
                      !is_loopback_address(hello.address);
  std::string host = listed;
  if (usable) {
    host = hello.address;
  } else if (listed == "localhost" ||
             (!hello.address.empty() && numeric_addresses(listed).empty() &&
              !leads_others(listed))) {
    host = hello.host_name;
  }
  return to_string(Endpoint{host, whole_number<std::uint16_t>(hello.port).value_or(0)});
}

std::vector<std::string> agent_command(const StartPlan& plan, std::size_t node,
                                       const Meeting& meeting) {
  std::vector<std::string> command = plan.flags;
  // Those beyond the most are spares.
  const bool ranked = plan.ranks_count && node < static_cast<std::size_t>(plan.most_nodes);
  if (plan.hosts.size() > 1 && ranked) command.push_back("--node-rank=" + std::to_string(node));
  if (plan.slots_count && plan.hosts[node].slots)
    command.push_back("--nproc-per-node=" + std::to_string(*plan.hosts[node].slots));
  if (plan.meet_at_first) {
    command.emplace_back("--rdzv-backend=c10d");
    command.push_back("--rdzv-endpoint=" + meeting.place);
    // Their addresses need not tell it: what a host is called here may lead elsewhere there.
    std::string conf = plan.conf;
    if (!plan.says_is_host)
      conf += std::string(conf.empty() ? "" : ",") +
              "is_host=" + (node == meeting.node ? "true" : "false");
    command.push_back("--rdzv-conf=" + conf);
  }
  command.emplace_back("--");
  command.insert(command.end(), plan.program.begin(), plan.program.end());
  return command;
}

}  // namespace drun::launcher::hosts
