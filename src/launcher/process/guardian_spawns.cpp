// GuardianLoop: how workers are started.
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/process/guardian_loop.hpp"

namespace drun::process {
namespace {

// How long a thread may take to make the process of a worker.
constexpr std::chrono::milliseconds kSpawnLimit{1000};

// `count` numbers as a bit mask in the kernel's form; numbers that no machine has are left out.
std::vector<unsigned long> read_mask(wire::Reader& reader, std::uint32_t count) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  constexpr std::int32_t kMostNumber = 65'535;
  std::vector<unsigned long> mask;
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto number = reader.number<std::int32_t>();
    if (number < 0 || number > kMostNumber) continue;
    const auto bit = static_cast<std::size_t>(number);
    if (mask.size() <= bit / kBits) mask.resize(bit / kBits + 1);
    mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return mask;
}

}  // namespace

void GuardianLoop::handle_environment(std::string_view payload) {
  shared_environment_ = std::make_shared<SharedEnvironment>();
  std::string& text = shared_environment_->text;
  text = payload;
  for (char* at = text.data(); at < text.data() + text.size(); at += std::strlen(at) + 1)
    shared_environment_->variables.push_back(at);
}

void GuardianLoop::handle_spawn(GuardianFrame frame) {
  Starting starting;
  WorkerId id = 0;
  auto made = plan(starting, frame, id);
  if (!made) return;
  starting.descriptors = std::move(frame.descriptors);
  starting_.insert_or_assign(id, std::move(starting));
  only_hanging_ = false;
  excuse_itself();
  spawners_.spawn(id, std::move(*made));
}

std::optional<SpawnPlan> GuardianLoop::plan(Starting& starting, const GuardianFrame& frame,
                                            WorkerId& id) {
  // On the heap, so that its bytes stay where they are when `starting` moves.
  starting.payload = std::make_unique<std::string>(frame.payload);
  starting.environment = shared_environment_;
  wire::Reader reader(*starting.payload);
  const auto body = reader.number<wire::SpawnBody>();
  id = body.id;
  if (stop_) return refuse(id, ECANCELED, kStartCancelled);
  if (lease_.over(boot_now())) {
    emit(LeaseOver());
    return refuse(id, ECANCELED, kStartUnleased);
  }
  if (frame.descriptors_missing) return refuse(id, EMFILE, "connect the standard streams");
  SpawnPlan plan;
  plan.argv.reserve(body.arguments + 1);
  plan.environment.reserve(shared_environment_->variables.size() + body.variables + 1);
  plan.environment = shared_environment_->variables;
  for (std::uint32_t i = 0; i < body.arguments; ++i)
    plan.argv.push_back(const_cast<char*>(reader.text()));
  for (std::uint32_t i = 0; i < body.variables; ++i)
    plan.environment.push_back(const_cast<char*>(reader.text()));
  plan.cpu_mask = read_mask(reader, body.cpus);
  plan.node_mask = read_mask(reader, body.memory_nodes);
  if (!reader.ok() || plan.argv.empty())
    return refuse(id, EINVAL, "start a worker without a program");
  std::size_t next = 0;
  for (unsigned i = 0; i < 3; ++i)
    plan.streams[i] = (body.which & (1U << i)) != 0 ? frame.descriptors[next++].get() : null_.get();
  static_assert(kServiceDescriptor == 3);
  if ((body.which & (1U << kServiceDescriptor)) != 0) plan.service = frame.descriptors[next].get();
  return plan;
}

std::nullopt_t GuardianLoop::refuse(WorkerId id, int error, std::string attempted) {
  fail(id, error, std::move(attempted));
  return std::nullopt;
}

void GuardianLoop::fail(WorkerId id, int error, std::string attempted) {
  SpawnFailed failed;
  failed.id = id;
  failed.error = error;
  failed.attempted = std::move(attempted);
  emit(failed);
}

void GuardianLoop::take_started() {
  for (const auto& result : spawners_.take())
    on_started(result.ticket, result.spawned);
}

void GuardianLoop::on_started(WorkerId id, const SpawnResult& result) {
  const auto found = starting_.find(id);
  if (found == starting_.end()) return;
  const Starting starting = std::move(found->second);
  starting_.erase(found);
  if (result.pid == 0) {
    if (!starting.forgotten) fail(id, result.error, result.attempted);
    return;
  }
  Spawned spawned;
  spawned.id = id;
  spawned.pid = result.pid;
  emit(spawned);
  // It may have ended before its start was heard of here.
  if (starting.end) return on_exit(id, *starting.end);
  any_child_ = true;
  workers_[id] = result.pid;
  ids_[result.pid] = id;
  // Those that came while it was being started, and had no process id to go to.
  for (const int signal : starting.signals)
    signal_group(result.pid, signal);
}

// A process may still come of it.
bool GuardianLoop::is_starting() const {
  return std::any_of(starting_.begin(), starting_.end(),
                     [](const auto& each) { return !each.second.forgotten; });
}

void GuardianLoop::cancel_spawns() {
  for (const auto id : spawners_.cancel()) {
    starting_.erase(id);
    fail(id, ECANCELED, kStartCancelled);
  }
}

void GuardianLoop::end_spawns() {
  (void)spawners_.cancel();
  const auto deadline = Clock::now() + kSpawnLimit;
  while (!spawners_.all_have_children() && Clock::now() < deadline)
    ::poll(nullptr, 0, 1);
}

}  // namespace drun::process
