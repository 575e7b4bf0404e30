// Batch systems that run the job's script on its first host and leave the others to the script:
// LSF, PBS, SGE, Cobalt. What they know is a list of hosts.
#include <algorithm>
#include <utility>

#include "launcher/cluster/hostlist.hpp"
#include "launcher/cluster/variables.hpp"

namespace drun::launcher::cluster {
namespace {

struct System {
  std::string_view scheduler;
  std::string_view id;
  std::string_view choice;    // for --cluster
  std::string_view one_each;  // the command that starts a program on a host of the job
  std::string_view element;   // of an array job; "": `id` says it
  std::string_view no_element;
};

constexpr System kLsf{"LSF", "LSB_JOBID", "lsf", "blaunch -z \"HOST ...\"", "LSB_JOBINDEX", "0"};
constexpr System kPbs{"PBS", "PBS_JOBID", "pbs", "pbsdsh -- \"$(command -v drun)\" --cluster pbs",
                      "",    ""};
constexpr System kSge{"SGE", "JOB_ID", "sge", "qrsh -inherit HOST", "SGE_TASK_ID", "undefined"};
constexpr System kCobalt{"Cobalt", "COBALT_JOBID", "cobalt", "ssh HOST", "", ""};

// The elements of an array have one number, and are jobs of their own: "77[3]", as PBS has it.
Value id_of(const Variables& variables, const System& system) {
  Value id = variables.text(system.id);
  const auto element = system.element.empty() ? std::nullopt : variables.find(system.element);
  if (!id.problem.empty() || !element || *element == system.no_element) return id;
  return value(id.text + "[" + *element + "]",
               std::string(system.id) + ", " + std::string(system.element));
}

HostsOfJob job_of(const Variables& variables, const System& system, std::string from, Hosts hosts) {
  HostsOfJob job;
  job.hosts = std::move(hosts);
  job.from = std::move(from);
  job.id = id_of(variables, system);
  job.port = port_of(std::string_view(job.id.text));
  return job;
}

std::optional<HostsOfJob> lsf_job(const Variables& variables) {
  if (!variables.has("LSB_JOBID") && !variables.has("LSB_DJOB_HOSTFILE") &&
      !variables.has("LSB_MCPU_HOSTS"))
    return std::nullopt;
  if (variables.has("LSB_DJOB_HOSTFILE")) {
    auto hosts = hosts_in_file(variables, "LSB_DJOB_HOSTFILE", first_words);
    if (hosts || !variables.has("LSB_MCPU_HOSTS"))
      return job_of(variables, kLsf, "LSB_DJOB_HOSTFILE", std::move(hosts));
  }
  return job_of(variables, kLsf, "LSB_MCPU_HOSTS",
                hosts_in(variables, "LSB_MCPU_HOSTS", hosts_with_slots));
}

std::optional<HostsOfJob> pbs_job(const Variables& variables) {
  if (!variables.has("PBS_NODEFILE") &&
      !(variables.has("PBS_JOBID") && variables.has("PBS_ENVIRONMENT")))
    return std::nullopt;
  return job_of(variables, kPbs, "PBS_NODEFILE",
                hosts_in_file(variables, "PBS_NODEFILE", first_words));
}

std::optional<HostsOfJob> sge_job(const Variables& variables) {
  if (!variables.has("PE_HOSTFILE") &&
      !(variables.has("JOB_ID") && variables.plain_number("NHOSTS").value_or(1) > 1))
    return std::nullopt;
  return job_of(variables, kSge, "PE_HOSTFILE",
                hosts_in_file(variables, "PE_HOSTFILE", first_words));
}

std::optional<HostsOfJob> cobalt_job(const Variables& variables) {
  if (!variables.has("COBALT_NODEFILE")) return std::nullopt;
  return job_of(variables, kCobalt, "COBALT_NODEFILE",
                hosts_in_file(variables, "COBALT_NODEFILE", first_words));
}

// The rank is the place of this host in the list.
std::optional<Allocation> allocation_in(const Variables& variables, const System& system,
                                        const std::optional<HostsOfJob>& job) {
  if (!job) return std::nullopt;
  Allocation allocation;
  allocation.scheduler = system.scheduler;
  if (!job->hosts) {
    allocation.nodes = allocation.endpoint = problem(job->hosts.error().what());
    return allocation;
  }
  const auto hosts = each_once(*job->hosts);
  const std::string& own = variables.around().host_name;
  allocation.nodes = value(std::to_string(hosts.size()), job->from);
  allocation.endpoint = meet_at(variables, hosts.front(), job->port, job->from);
  allocation.id = job->id;
  const auto mine = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const std::string& host) { return same_host(host, own); });
  if (mine == hosts.end()) {
    allocation.rank = problem(variables.shown(job->from) + " does not list this host, " + own);
  } else {
    allocation.rank = value(std::to_string(mine - hosts.begin()), job->from);
    allocation.one_rank_a_host = true;
  }
  // The others start nothing by themselves. On the first host drun may be the script's alone.
  const bool script = mine == hosts.begin() && !variables.around().named;
  const std::string start(system.one_each);
  const bool complete = start.find("drun") != std::string::npos;
  // LSF's list in a variable is no file.
  const bool file = job->from != "LSB_MCPU_HOSTS";
  if (hosts.size() > 1 && script)
    allocation.refusal =
        std::string(system.scheduler) + " gives the job " + std::to_string(hosts.size()) +
        " hosts (" + job->from +
        ") and runs its script on the first alone; start one drun on each: " + start +
        (complete ? "" : " drun --cluster " + std::string(system.choice)) + " ..." +
        (file ? ", or all of them from here, over ssh: drun --hostfile \"$" + job->from + "\" ..."
              : "");
  return allocation;
}

}  // namespace

std::optional<Allocation> lsf(const Variables& variables) {
  return allocation_in(variables, kLsf, lsf_job(variables));
}

// Torque's pbsdsh numbers what it starts by the lines of the list, of which a host may have
// several.
std::optional<Allocation> pbs(const Variables& variables) {
  const auto job = pbs_job(variables);
  auto allocation = allocation_in(variables, kPbs, job);
  const auto slot = variables.plain_number("PBS_VNODENUM");
  if (!allocation || !job->hosts || !slot || *slot < 1) return allocation;
  const auto& lines = *job->hosts;
  const auto place = static_cast<std::size_t>(*slot);
  if (place < lines.size() && lines[place] == lines[place - 1] &&
      same_host(lines[place], variables.around().host_name))
    allocation->refusal = "pbsdsh started several drun on this host (" +
                          variables.shown("PBS_VNODENUM") +
                          "), but one drun starts all workers of a host; pbsdsh -u starts one on "
                          "each host";
  return allocation;
}

// Every job of SGE has a JOB_ID; one of several hosts has a parallel environment.
std::optional<Allocation> sge(const Variables& variables) {
  return allocation_in(variables, kSge, sge_job(variables));
}

std::optional<Allocation> cobalt(const Variables& variables) {
  return allocation_in(variables, kCobalt, cobalt_job(variables));
}

std::optional<HostsOfJob> hosts_of_batch_job(const Variables& variables) {
  for (const auto& job : {lsf_job, pbs_job, sge_job, cobalt_job})
    if (auto found = job(variables)) return found;
  return std::nullopt;
}

}  // namespace drun::launcher::cluster
