// What the readers of this room share: looks into the environment, and the port of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/cluster/cluster.hpp"

namespace drun::launcher::cluster {

// Where nodes with addresses of their own meet, as pods: c10d's port is as good as any there.
inline constexpr std::uint16_t kPortOfPods = 29400;

class Variables {
 public:
  explicit Variables(const SchedulerInput& around) : around_(around) {}

  [[nodiscard]] const SchedulerInput& around() const { return around_; }
  // The value without blanks around it; nullopt: not set, or empty.
  [[nodiscard]] std::optional<std::string> find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name).has_value(); }
  // "NAME='value'", cut and made printable; "NAME (not set)".
  [[nodiscard]] std::string shown(std::string_view name) const;
  // A whole number of at least `lowest`; if it is not: a problem that names the variable.
  [[nodiscard]] Value number(std::string_view name, int lowest) const;
  // For looks aside: nullopt if it is no number.
  [[nodiscard]] std::optional<int> plain_number(std::string_view name) const;
  // Fit for a job's id; a problem if it is not set.
  [[nodiscard]] Value text(std::string_view name) const;

 private:
  const SchedulerInput& around_;
};

using Hosts = Result<std::vector<std::string>>;

[[nodiscard]] Value problem(std::string text);
[[nodiscard]] Value value(std::string text, std::string_view from);

// Where jobs of this number meet: 20000 + (job + 1000 * step) % 10000. It is below the ports that
// Linux gives away by itself (from 32768) and above those of well-known services.
[[nodiscard]] std::uint16_t port_of(std::uint64_t job, std::uint64_t step = 0);
// The number that `id` begins with ("4711.server" of PBS), else a hash of it; of an element of an
// array ("4711[3].server"), too.
[[nodiscard]] std::uint16_t port_of(std::string_view id);
// Of "host", "host:port", "[fd00::1]:port" or "fd00::1"; as it is if it is none of these.
[[nodiscard]] std::string host_of(const std::string& place);
// Where the nodes meet, as `from` says; a problem if that has no host.
[[nodiscard]] Value meet_at(const Variables& variables, const std::string& host, std::uint16_t port,
                            std::string_view from);
// "host:port", with brackets around an IPv6 address.
[[nodiscard]] std::string at_port(const std::string& host, std::uint16_t port);

// The launcher serves PMI-1: the endpoint is rank 0's to tell. False: it does not.
bool offers_pmi(const Variables& variables, Allocation& allocation);

// The list in a variable's value, or in the file that it names. The error names the variable.
[[nodiscard]] Hosts hosts_in(const Variables& variables, std::string_view name,
                             Hosts (*parse)(std::string_view));
[[nodiscard]] Hosts hosts_in_file(const Variables& variables, std::string_view name,
                                  Hosts (*parse)(std::string_view));

// Each looks for one kind of scheduler; nullopt: it did not start this process.
using Reader = std::optional<Allocation> (*)(const Variables& variables);
std::optional<Allocation> open_mpi(const Variables& variables);
std::optional<Allocation> hydra(const Variables& variables);
std::optional<Allocation> mvapich(const Variables& variables);
std::optional<Allocation> pals(const Variables& variables);
std::optional<Allocation> jsrun(const Variables& variables);
std::optional<Allocation> flux(const Variables& variables);
std::optional<Allocation> flux_script(const Variables& variables);
std::optional<Allocation> slurm(const Variables& variables);
std::optional<Allocation> leader_worker_set(const Variables& variables);
std::optional<Allocation> volcano(const Variables& variables);
std::optional<Allocation> pytorch_job(const Variables& variables);
std::optional<Allocation> jax_job(const Variables& variables);
std::optional<Allocation> indexed_job(const Variables& variables);
std::optional<Allocation> ranked_pods(const Variables& variables);
std::optional<Allocation> sagemaker(const Variables& variables);
std::optional<Allocation> azure_ml(const Variables& variables);
std::optional<Allocation> vertex(const Variables& variables);
std::optional<Allocation> lepton(const Variables& variables);
std::optional<Allocation> lsf(const Variables& variables);
std::optional<Allocation> pbs(const Variables& variables);
std::optional<Allocation> sge(const Variables& variables);
std::optional<Allocation> cobalt(const Variables& variables);

// A batch system's list of the job's hosts, for launchers that have none. Nullopt: no batch system.
struct HostsOfJob {
  Hosts hosts;
  std::string from;  // the variable with the list
  Value id;
  std::uint16_t port = 0;
};
[[nodiscard]] std::optional<HostsOfJob> hosts_of_slurm_job(const Variables& variables);
[[nodiscard]] std::optional<HostsOfJob> hosts_of_batch_job(const Variables& variables);

}  // namespace drun::launcher::cluster
