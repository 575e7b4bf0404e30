#include "launcher/command_line/build.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/environment_variable.hpp"
#include "base/number_ranges.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"
#include "launcher/command_line/flags.hpp"
#include "launcher/command_line/values.hpp"

namespace drun::launcher {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();

void build_job(const cli::GivenFlags& flags, const Host& host, Options& options) {
  if (const cli::Setting* nodes = flags.find("local-nodes")) {
    options.local_nodes = parse_integer(*nodes, 1, 10'000);
    options.min_nodes = options.max_nodes = options.local_nodes;
  }
  if (const cli::Setting* nodes = flags.find("nnodes")) {
    const NodeNumbers numbers = parse_nodes(*nodes);
    options.min_nodes = numbers.least;
    options.max_nodes = numbers.most;
    options.node_step = numbers.step;
    if (options.local_nodes > 0 && options.local_nodes < options.min_nodes) {
      refuse(*nodes, "--local-nodes " + std::to_string(options.local_nodes) +
                         " starts fewer, and no other machine can join them");
    }
  }
  if (const cli::Setting* setting = flags.find("max-restarts")) {
    options.max_restarts = parse_integer(*setting, 0, kMost);
  }
  if (const cli::Setting* setting = flags.find("max-losses")) {
    options.max_losses = parse_integer(*setting, 0, kMost);
  }
  if (const cli::Setting* setting = flags.find("min-runtime"))
    options.min_runtime = parse_duration(*setting, true);
  if (const cli::Setting* setting = flags.find("exclude-after"))
    options.exclude_after = parse_integer(*setting, 0, kMost);
  if (const cli::Setting* setting = flags.find("exclude-file")) {
    if (setting->value.empty()) refuse(*setting, "expected the name of a file");
    options.exclude_file = setting->value;
  }
  // TorchX gives an empty name, so that --tee shows nothing but the rank.
  if (const cli::Setting* setting = flags.find("role")) options.role = setting->value;
  if (const cli::Setting* setting = flags.find("resize")) {
    options.resize =
        parse_choice(*setting) == 0 ? rendezvous::Resize::Now : rendezvous::Resize::Restart;
  }
  if (const cli::Setting* setting = flags.find("rank-order")) {
    using enum rendezvous::RankOrder;
    constexpr rendezvous::RankOrder kOrders[] = {Keep, Host, Join, Topology};
    options.rank_order = kOrders[parse_choice(*setting)];
  }
  if (const cli::Setting* setting = filled(flags, "local-addr")) {
    const auto& lookup = host.interface_address;
    options.local_addr = lookup ? lookup(setting->value) : std::nullopt;
    if (!options.local_addr) {
      const auto parsed = parse_endpoint(setting->value, 0);
      if (!parsed || parsed->port != 0) {
        refuse(*setting, "expected an address, a host name or the name of an interface");
      }
      options.local_addr = parsed->host;
    }
  }
  if (const cli::Setting* setting = flags.find("worker-store")) {
    using enum WorkerStore;
    constexpr WorkerStore kStores[] = {Agent, Local, Rank0};
    options.worker_store = kStores[parse_choice(*setting)];
    options.worker_store_chosen = true;
  }
}

Frameworks parse_frameworks(const cli::Setting& setting) {
  Frameworks result;
  std::string_view rest = setting.value;
  do {
    const std::string_view name = take_until(rest, ',');
    bool* const chosen = name == "jax"          ? &result.jax
                         : name == "mpi"        ? &result.mpi
                         : name == "oneccl"     ? &result.oneccl
                         : name == "tensorflow" ? &result.tensorflow
                                                : nullptr;
    if (chosen == nullptr)
      refuse(setting, "expected jax, mpi, oneccl or tensorflow, or several with commas");
    *chosen = true;
  } while (!rest.empty());
  return result;
}

// Who has MASTER_PORT: JAX's coordinator needs it, which is in the worker of rank 0; with MPI and
// TensorFlow the nodes meet at drun's store there.
void build_frameworks(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* setting = flags.find("framework");
  if (setting == nullptr) return;
  options.frameworks = parse_frameworks(*setting);
  if (options.frameworks.jax) {
    if (flags.find("worker-store") != nullptr && options.worker_store != WorkerStore::Rank0)
      refuse(*setting, "JAX's coordinator needs MASTER_PORT: use --worker-store rank0");
    options.worker_store = WorkerStore::Rank0;
    options.worker_store_chosen = true;
  }
}

// The other groups read a group's MASTER_ADDR and MASTER_PORT, and come there.
void check_worker_store(const cli::GivenFlags& flags, const Options& options) {
  if (options.replica_groups > 0 && options.worker_store == WorkerStore::Local)
    refuse(*flags.find("worker-store"),
           "other replica groups could not reach the store: use --worker-store agent");
}

void check_frameworks(const cli::GivenFlags& flags, const Options& options) {
  const cli::Setting* setting = flags.find("framework");
  const std::string other = options.frameworks.mpi          ? "mpi"
                            : options.frameworks.tensorflow ? "tensorflow"
                                                            : "";
  if (!other.empty() && options.max_nodes > 1 && options.worker_store == WorkerStore::Rank0)
    refuse(*setting,
           options.frameworks.jax
               ? "on several nodes jax and " + other + " both need MASTER_PORT: give one of them"
               : "on several nodes " + other +
                     " needs drun's store at MASTER_PORT: use --worker-store agent");
}

// --tee 3 with the rank in front, as srun and mpiexec have it. What goes to files alone still does.
void build_label(const cli::GivenFlags& flags, OutputChoices& output) {
  if (!flags.on("label")) return;
  if (flags.find("log-line-prefix-template") == nullptr) output.prefix_template = "${rank}: ";
  constexpr int kBoth = StreamChoice::kOut | StreamChoice::kErr;
  const StreamChoice tee = output.tee;
  output.tee.all |= kBoth & ~output.redirects.all;
  for (const StreamChoice& choice : {tee, output.redirects})
    for (const auto& [rank, bits] : choice.by_local_rank)
      output.tee.by_local_rank[rank] = tee.of(rank) | (kBoth & ~output.redirects.of(rank));
}

void build_output(const cli::GivenFlags& flags, Options& options) {
  OutputChoices& output = options.output;
  if (const cli::Setting* setting = flags.find("redirects"))
    output.redirects = parse_streams(*setting);
  if (const cli::Setting* setting = flags.find("tee")) output.tee = parse_streams(*setting);
  if (const cli::Setting* setting = flags.find("log-dir")) {
    // An empty variable of the user's own is hardly meant: what was to be kept would be lost.
    if (setting->value.empty() && setting->source == cli::Source::Flag)
      refuse(*setting, "expected the name of a folder");
    output.log_dir = setting->value;
  }
  if (const cli::Setting* setting = flags.find("local-ranks-filter");
      setting != nullptr && !setting->value.empty()) {
    output.local_ranks_filter = parse_ranks(*setting);
  }
  if (const cli::Setting* setting = flags.find("log-line-prefix-template")) {
    output.prefix_template = setting->value;
  }
  if (const cli::Setting* setting = flags.find("duplicate-stdout-filters")) {
    output.duplicate_stdout_filters = parse_texts(*setting);
  }
  if (const cli::Setting* setting = flags.find("duplicate-stderr-filters")) {
    output.duplicate_stderr_filters = parse_texts(*setting);
  }
  build_label(flags, output);
  output.timestamps = flags.on("timestamps");
  output.fold = flags.on("fold");
  if (const cli::Setting* setting = flags.find("color"))
    output.color = static_cast<ColorChoice>(parse_choice(*setting));
  if (const cli::Setting* setting = flags.find("log-max-size")) {
    output.log_max_size = parse_size(*setting);
  }
  if (const cli::Setting* setting = flags.find("tail-lines")) {
    output.tail_lines = static_cast<std::size_t>(parse_integer(*setting, 0, 10'000));
  }
  if (const cli::Setting* setting = flags.find("report")) {
    if (setting->value.empty()) refuse(*setting, "expected the name of a file");
    if (setting->value == "-")
      refuse(*setting, "expected the name of a file; standard output is the workers'");
    options.report_file = setting->value;
  }
  if (const cli::Setting* setting = flags.find("stdin")) {
    if (setting->value == "none") {
      options.stdin_rank.reset();
    } else if (setting->value.find_first_not_of("0123456789") == std::string::npos) {
      options.stdin_rank = parse_integer(*setting, 0, kMost);
    } else {
      refuse(*setting, "expected a rank or none");
    }
  }
  options.verbose = flags.on("verbose");
  options.quiet = flags.on("quiet");
  if (options.verbose && options.quiet) {
    throw cli::UsageError("--quiet and --verbose contradict each other: give one of them");
  }
}

// Agents of one machine find the same there.
void build_preflight(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* setting = flags.find("preflight");
  if (setting == nullptr) return;
  options.preflight = static_cast<Preflight>(parse_choice(*setting));
  if (options.preflight == Preflight::Off || compares_facts(options)) return;
  options.notes.push_back(
      setting->shown + " " + setting->value + " has nothing to compare: " +
      (options.max_nodes == 1 ? "the job has one node" : "all nodes are this machine"));
}

// Of a job that can change its size a node may go.
void build_leaving(const cli::GivenFlags& flags, Options& options) {
  options.leave_on_sigterm = is_elastic(options);
  if (const cli::Setting* setting = flags.find("on-sigterm"))
    options.leave_on_sigterm = parse_choice(*setting) == 0;
}

// What only a Python launcher can honour.
void check_compatibility(const cli::GivenFlags& flags, Options& options) {
  if (const cli::Setting* setting = flags.find("monitor-interval"))
    (void)parse_duration(*setting, false);
  if (const cli::Setting* setting = flags.find("start-method")) {
    (void)parse_choice(*setting);
  }
  if (const cli::Setting* setting = flags.find("event-log-handler")) {
    const auto choice = parse_choice(*setting, {"null", "console", "dynamic_rendezvous"});
    if (choice != 0) {
      options.notes.push_back(setting->shown + " " + in_quotes(setting->value) +
                              " has no effect: drun writes no torch events");
    }
  }
  if (const cli::Setting* setting = flags.find("logs-specs");
      setting && setting->value != "default") {
    refuse(*setting,
           "drun cannot load Python plug-ins; --log-dir, --redirects, --tee and "
           "--log-line-prefix-template say where output goes");
  }
}

// mpirun and srun count the workers of the whole job with it, so only on one node it says the same.
void check_dash_n(const cli::GivenFlags& flags, const Options& options) {
  const cli::Setting* setting = flags.find("nproc-per-node");
  if (setting != nullptr && setting->shown == "-n" && options.max_nodes > 1)
    refuse(*setting,
           "of each node or of the job? With several nodes say --nproc-per-node: of each node");
}

// If one machine is the job, its size is known. Otherwise every round tells it.
void check_stdin(const cli::GivenFlags& flags, const Options& options) {
  const cli::Setting* setting = flags.find("stdin");
  if (setting == nullptr || !options.stdin_rank) return;
  if (options.max_nodes != 1 && options.local_nodes == 0) return;
  const std::int64_t ranks = std::int64_t{options.max_nodes} * options.nproc_per_node;
  if (*options.stdin_rank < ranks) return;
  refuse(*setting, ranks == 1 ? "the job has rank 0 only"
                              : "the job has ranks 0 to " + std::to_string(ranks - 1) + " only");
}

// The streams that some rank does not show.
int hidden_streams(const OutputChoices& output) {
  int hidden = output.redirects.all & ~output.tee.all;
  for (const StreamChoice& choice : {output.redirects, output.tee})
    for (const auto& [rank, bits] : choice.by_local_rank)
      hidden |= output.redirects.of(rank) & ~output.tee.of(rank);
  return hidden;
}

// "local rank 0: " if only some do not; "" if all do not.
std::string who_hides(const OutputChoices& output) {
  if ((output.redirects.all & ~output.tee.all) != 0) return "";
  std::vector<int> ranks;
  for (const StreamChoice& choice : {output.redirects, output.tee})
    for (const auto& [rank, bits] : choice.by_local_rank)
      if ((output.redirects.of(rank) & ~output.tee.of(rank)) != 0) ranks.push_back(rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks.empty() ? "" : "local " + ranks_text(ranks) + ": ";
}

// Without a folder. A failure report has the end of stderr.
std::string lost_streams(int hidden, std::size_t tail_lines) {
  const bool out = (hidden & StreamChoice::kOut) != 0;
  const bool err = (hidden & StreamChoice::kErr) != 0;
  if (!err || tail_lines == 0)
    return std::string(out ? "standard output " : "") + (out && err ? "and " : "") +
           (err ? "standard error " : "") + (out && err ? "are" : "is") + " neither shown nor kept";
  return std::string(out ? "standard output is neither shown nor kept, nor is standard error"
                         : "standard error is neither shown nor kept") +
         " but for its end in a failure report";
}

// A folder to which nothing of the workers' output goes, though error files do.
void note_idle_folder(const cli::GivenFlags& flags, Options& options) {
  const OutputChoices& output = options.output;
  bool told = false;
  const auto tees = [&](int stream) {
    const auto& ranks = output.tee.by_local_rank;
    return (output.tee.all & stream) != 0 ||
           std::any_of(ranks.begin(), ranks.end(),
                       [&](const auto& rank) { return (rank.second & stream) != 0; });
  };
  for (const auto& [name, stream] : {std::pair("duplicate-stdout-filters", StreamChoice::kOut),
                                     std::pair("duplicate-stderr-filters", StreamChoice::kErr)}) {
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr || tees(stream)) continue;
    options.notes.push_back(setting->shown + " has no effect without --tee");
    told = true;
  }
  const cli::Setting* folder = flags.find("log-dir");
  if (folder != nullptr && !told && output.tee.none() && output.redirects.none())
    options.notes.push_back(folder->shown +
                            ": no output is kept there without --tee or --redirects");
}

// The flags that say what becomes of the workers' output, without a folder to put it; or a folder
// without them.
void note_lost_output(const cli::GivenFlags& flags, Options& options) {
  const OutputChoices& output = options.output;
  if (output.log_dir == "/dev/null") return;
  if (!output.log_dir.empty()) return note_idle_folder(flags, options);
  const int hidden = hidden_streams(output);
  if (const cli::Setting* setting = flags.find("redirects"); setting != nullptr && hidden != 0)
    options.notes.push_back(setting->shown + " " + setting->value + " without --log-dir: " +
                            who_hides(output) + lost_streams(hidden, output.tail_lines));
  for (const char* name : {"duplicate-stdout-filters", "duplicate-stderr-filters", "log-max-size"})
    if (const cli::Setting* setting = flags.find(name))
      options.notes.push_back(setting->shown + " has no effect without --log-dir");
}

// torchrun's variable may well be set for other jobs.
void note_idle_prefix(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* setting = flags.find("log-line-prefix-template");
  if (setting != nullptr && setting->source == cli::Source::Flag && options.output.tee.none())
    options.notes.push_back(setting->shown + " has no effect without --tee or --label");
}

// For a rank of a node that has more workers than this one, or of the job instead of the node.
void note_ranks_of_nobody(const cli::GivenFlags& flags, Options& options) {
  const auto nobody = [&](const std::vector<int>& ranks) {
    return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(),
                                         [&](int rank) { return rank >= options.nproc_per_node; });
  };
  const auto note = [&](const cli::Setting& setting, const char* effect) {
    const int last = options.nproc_per_node - 1;
    options.notes.push_back(
        setting.shown + " " + setting.value + effect +
        (last == 0 ? " here: this node's only local rank is 0"
                   : " here: this node's local ranks are 0 to " + std::to_string(last)));
  };
  const auto& shown = options.output.local_ranks_filter;
  if (shown && nobody(*shown)) note(*flags.find("local-ranks-filter"), " shows no output");
  for (const char* name : {"redirects", "tee"}) {
    const cli::Setting* setting = flags.find(name);
    if (setting == nullptr) continue;
    std::vector<int> ranks;
    for (const auto& [rank, bits] : parse_streams(*setting).by_local_rank)
      ranks.push_back(rank);
    if (nobody(ranks)) note(*setting, " has no effect");
  }
}

// A launcher that starts a drun for each of its tasks: every one would run the whole job. A worker
// of drun inherits that launcher's variables, and is none of its tasks.
void note_other_tasks(const cli::GivenFlags& flags, Options& options) {
  const cli::Setting* cluster = flags.find("cluster");
  if (cluster != nullptr && cluster->value == "none") return;  // that is what is asked for
  if (options.max_nodes > 1 && options.local_nodes == 0) return;
  if (options.replica_group >= 0) return;  // each is a node of one group
  if (environment_variable(options.inherited, "DRUN_ROUND")) return;
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const auto tasks = environment_variable(options.inherited, name);
    const auto number = tasks ? whole_number<int>(*tasks) : std::nullopt;
    if (!number || *number < 2) continue;
    options.notes.push_back("each of the " + *tasks + " tasks (" + name +
                            ") starts a job of its own; for one job on all nodes start one task a "
                            "node, with --nnodes and --rdzv-endpoint");
    return;
  }
  // Whether they count nodes or workers nobody knows.
  const auto world = environment_variable(options.inherited, "WORLD_SIZE");
  const auto number = world ? whole_number<int>(*world) : std::nullopt;
  if (!number || *number < 2) return;
  for (const char* name : {"RANK", "MASTER_ADDR"})
    if (environment_variable(options.inherited, name).value_or("").empty()) return;
  options.notes.push_back("WORLD_SIZE is " + *world +
                          ", and RANK and MASTER_ADDR are set, but this drun starts a job of its "
                          "own; if they count nodes, --cluster operator makes one job of all");
}

}  // namespace

Options build_options(const BuildInput& given) {
  Options options;
  options.inherited = given.environment;
  build_job(given.flags, given.host, options);
  build_groups(given.flags, options);
  build_topology(given, options);
  build_frameworks(given.flags, options);
  build_stopping(given.flags, options);
  build_events(given.flags, options);
  build_output(given.flags, options);
  build_status(given.flags, options);
  build_devices(given, options);
  check_compatibility(given.flags, options);
  resolve_rendezvous(given, options);
  build_leaving(given.flags, options);
  build_preflight(given.flags, options);
  build_command(given, options);
  check_worker_store(given.flags, options);
  check_frameworks(given.flags, options);
  check_dash_n(given.flags, options);
  check_stdin(given.flags, options);
  note_lost_output(given.flags, options);
  note_idle_prefix(given.flags, options);
  note_ranks_of_nobody(given.flags, options);
  note_other_tasks(given.flags, options);
  return options;
}

}  // namespace drun::launcher
