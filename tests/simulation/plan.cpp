#include "simulation/plan.hpp"

#include <algorithm>

#include "simulation/random.hpp"

namespace drun::simulation {

Plan make_plan(std::uint64_t seed, int most_nodes) {
  Random random(seed);
  Plan plan;
  plan.seed = seed;
  // Small jobs find most; large ones are rarer because they cost more.
  const int size = random.in(0, 99);
  const int limit = size < 60 ? 4 : size < 90 ? 8 : size < 98 ? 20 : 64;
  plan.max_nodes = random.in(1, std::min(limit, most_nodes));
  plan.min_nodes = random.chance(40) ? plan.max_nodes : random.in(1, plan.max_nodes);
  plan.first_nodes = random.chance(60) ? plan.max_nodes : random.in(1, plan.max_nodes + 2);
  plan.start_spread_ms = random.chance(50) ? 20 : random.in(0, 3000);
  plan.hosted = random.chance(60);
  plan.max_restarts = random.in(0, 6);
  plan.asked_ranks = random.chance(25);
  plan.rank_order = static_cast<rendezvous::RankOrder>(random.in(0, 9) < 7 ? 0 : random.in(1, 2));
  plan.resize = random.chance(70) ? rendezvous::Resize::Now : rendezvous::Resize::Restart;
  plan.work_ms = random.in(500, 15'000);
  plan.max_delay_ms = random.chance(50) ? 2 : random.in(1, 400);
  plan.reorder = random.chance(50);
  plan.loose_sessions = random.chance(30);
  plan.slow_stop = random.chance(80) ? 0 : 30;
  plan.cascade = random.chance(50) ? 0 : random.in(10, 100);

  const int faults = random.chance(5) ? 0 : random.in(1, random.chance(60) ? 5 : 16);
  for (int i = 0; i < faults; ++i) {
    static constexpr Fault kCommon[] = {Fault::Join,  Fault::Join,        Fault::Join,
                                        Fault::Crash, Fault::Crash,       Fault::PowerOff,
                                        Fault::Pause, Fault::Partition,   Fault::Partition,
                                        Fault::Reset, Fault::WorkerFails, Fault::WorkerFails,
                                        Fault::Reset, Fault::WorkerFails, Fault::StoreRestart};
    Step step;
    // Anywhere, during the first moments, or right after another fault.
    const int when = random.in(0, 3);
    step.at_ms = when == 0                          ? random.in(0, 300)
                 : when == 1 && !plan.steps.empty() ? plan.steps.back().at_ms + random.in(0, 250)
                                                    : random.in(0, 2 * plan.work_ms);
    step.fault = kCommon[random.in(0, std::size(kCommon) - 1)];
    if (random.chance(2)) step.fault = Fault::Stop;
    if (random.chance(1)) step.fault = Fault::HostDies;
    step.node = random.in(0, 1000);
    step.duration_ms = random.chance(50) ? random.in(1, 1500) : random.in(500, 20'000);
    step.detail = random.in(0, 99);
    plan.steps.push_back(step);
    if ((step.fault == Fault::Crash || step.fault == Fault::PowerOff) && random.chance(70)) {
      step.fault = Fault::Join;  // a replacement
      step.at_ms += random.in(0, random.chance(50) ? 500 : 12'000);
      plan.steps.push_back(step);
    }
  }
  // Drawn apart, so that what follows from the seed otherwise stays.
  Random apart(seed ^ 0x10111);
  if (apart.chance(30)) plan.join_timeout_ms = apart.in(3'000, 20'000);
  Random leaves(seed ^ 0x60A11);
  for (int i = leaves.chance(20) ? leaves.in(1, 3) : 0; i > 0; --i)
    plan.steps.push_back({leaves.in(0, 2 * plan.work_ms), Fault::Go, leaves.in(0, 1000), 0, 0});
  if (leaves.chance(8))
    plan.steps.push_back(
        {leaves.in(0, 2 * plan.work_ms), Fault::GoAll, leaves.in(0, 1000), 0, leaves.in(0, 99)});
  if (apart.chance(60)) plan.snapshot_age_ms = apart.in(1, apart.chance(70) ? 1'000 : 5'000);
  if (apart.chance(5)) {  // somebody, perhaps the leader, dies in silence, and one is told to stop
    Step step;
    step.fault = Fault::PowerOff;
    step.at_ms = apart.in(0, plan.work_ms);
    step.node = apart.in(0, 1000);
    plan.steps.push_back(step);
    step.fault = Fault::Stop;
    step.at_ms += apart.in(0, 3'000);
    step.node = apart.in(0, 1000);
    plan.steps.push_back(step);
  }
  if (plan.hosted && apart.chance(10)) {
    Step step;
    step.fault = Fault::HostRestarts;
    step.at_ms = apart.in(0, 2 * plan.work_ms);
    step.duration_ms = apart.in(20, 4'000);
    plan.steps.push_back(step);
  }
  Random strangers(seed ^ 0x57A6);
  if (!plan.hosted && strangers.chance(8)) {
    // The store comes back empty, and newcomers find it before those of the running round do.
    const int at = strangers.in(0, plan.work_ms);
    plan.steps.push_back({at, Fault::StoreRestart, 0, strangers.in(20, 200), 99});
    for (int i = 0; i < plan.first_nodes; ++i)
      plan.steps.push_back({at, Fault::Partition, i, strangers.in(200, 5'000), 0});
    for (int i = 0; i < plan.max_nodes; ++i)
      plan.steps.push_back({at + 1, Fault::Join, 0, 0, 0});
  }
  Random limits(seed ^ 0xF011);
  if (limits.chance(15)) plan.keys_per_request = limits.in(1, 6);
  if (limits.chance(10))
    plan.steps.push_back({limits.in(0, 2 * plan.work_ms), Fault::StoreFull, 0,
                          limits.chance(50) ? limits.in(1, 20'000) : limits.in(20'000, 200'000),
                          limits.in(0, 99)});
  if (limits.chance(15)) plan.max_losses = limits.in(0, 3);
  Random doubts(seed ^ 0xD0B7);
  if (!plan.hosted && doubts.chance(3)) {
    // The store loses its sessions, and nodes that have come back are cut off, perhaps before it
    // knows them again: then it was full. Others take their places.
    const int at = doubts.in(0, plan.work_ms);
    const int full = doubts.chance(50) ? 0 : doubts.in(1, 9'000);
    plan.steps.push_back({at, Fault::StoreRestart, 0, 50, doubts.chance(50) ? 50 : 99});
    if (full > 0) plan.steps.push_back({at + 50, Fault::StoreFull, 0, full, 0});
    const int back = std::max(full, 50) + doubts.in(0, plan.max_delay_ms * 4);
    for (int i = 0; i < plan.first_nodes; ++i) {
      plan.steps.push_back({at + back, Fault::Join, 0, 0, 0});
      if (doubts.chance(50))
        plan.steps.push_back({at + back, Fault::Partition, i, doubts.in(1'000, 20'000), 0});
    }
  }
  Random late(seed ^ 0x1A7E);
  if (late.chance(3)) {
    // The store is full while nodes stop, for about as long as they may take for that.
    const int at = late.in(plan.work_ms / 4, plan.work_ms);
    plan.steps.push_back({at, Fault::WorkerFails, late.in(0, 1000), 0, 0});
    plan.steps.push_back({at + late.in(0, plan.max_delay_ms * 6 + 60), Fault::StoreFull, 0,
                          late.in(14'000, 20'000), 0});
  }
  Random busy(seed ^ 0xC0B5);
  for (int i = busy.chance(10) ? busy.in(1, 4) : 0; i > 0; --i)
    plan.steps.push_back({busy.in(0, 2 * plan.work_ms), Fault::Busy, busy.in(0, 1000),
                          busy.chance(50) ? busy.in(1, 1'500) : busy.in(1'000, 12'000), 0});
  Random sizes(seed ^ 0x57E4);
  if (plan.max_nodes > 1 && sizes.chance(10)) {
    plan.node_step = sizes.in(2, std::min(4, plan.max_nodes));
    plan.max_nodes -= plan.max_nodes % plan.node_step;
    plan.min_nodes += (plan.node_step - plan.min_nodes % plan.node_step) % plan.node_step;
    plan.min_nodes = std::min(plan.min_nodes, plan.max_nodes);
  }
  Random networks(seed ^ 0x7095);
  if (networks.chance(8)) plan.rank_order = rendezvous::RankOrder::Topology;
  Random stalls(seed ^ 0x57A11);
  for (int i = stalls.chance(10) ? stalls.in(1, 2) : 0; i > 0; --i)
    plan.steps.push_back({stalls.in(0, 2 * plan.work_ms), Fault::Stall, stalls.in(0, 1000),
                          stalls.in(1, 12'000), stalls.in(0, 99)});
  Random crashes(seed ^ 0xB21EF);
  if (crashes.chance(15)) plan.min_runtime_ms = crashes.in(1, 2 * plan.work_ms);
  // By this number no seed that simulation_test.cpp names draws one.
  Random hangs(seed ^ 0x4A910);
  if (hangs.chance(10))
    plan.steps.push_back({hangs.in(0, plan.work_ms), Fault::Hang, hangs.in(0, 1000),
                          hangs.in(1, 6'000), hangs.in(0, 99)});
  Random strange_writes(seed ^ 0x1EADE5);
  if (strange_writes.chance(5))
    plan.steps.push_back({strange_writes.in(0, 2 * plan.work_ms), Fault::Stranger,
                          strange_writes.in(0, 1000), 0, strange_writes.in(0, 99)});
  std::stable_sort(plan.steps.begin(), plan.steps.end(),
                   [](const Step& a, const Step& b) { return a.at_ms < b.at_ms; });
  return plan;
}

const char* name(Fault fault) {
  static constexpr const char* kNames[] = {
      "join",         "crash", "power off",     "pause",     "partition", "reset",
      "worker fails", "stop",  "store restart", "host dies", "go",        "go all",
      "store full",   "busy",  "host restarts", "stall",     "hang",      "stranger"};
  return kNames[static_cast<int>(fault)];
}

std::string describe(const Plan& plan) {
  std::string text =
      "seed " + std::to_string(plan.seed) + ": nodes " + std::to_string(plan.min_nodes) + ":" +
      std::to_string(plan.max_nodes) + ":" + std::to_string(plan.node_step) + ", first " +
      std::to_string(plan.first_nodes) + " within " + std::to_string(plan.start_spread_ms) + " ms" +
      (plan.hosted ? ", hosted" : ", external store") + ", restarts " +
      std::to_string(plan.max_restarts) +
      (plan.max_losses ? ", losses " + std::to_string(*plan.max_losses) : "") +
      (plan.min_runtime_ms > 0 ? ", at least " + std::to_string(plan.min_runtime_ms) + " ms" : "") +
      (plan.asked_ranks ? ", asked ranks" : "") + ", rank order " +
      std::to_string(static_cast<int>(plan.rank_order)) + ", resize " +
      std::to_string(static_cast<int>(plan.resize)) + ", work " + std::to_string(plan.work_ms) +
      " ms, join timeout " + std::to_string(plan.join_timeout_ms) + " ms, delay " +
      std::to_string(plan.max_delay_ms) + " ms" + (plan.reorder ? ", reordered" : "") +
      (plan.loose_sessions ? ", loose sessions" : "") + ", slow stop " +
      std::to_string(plan.slow_stop) + "%, cascade " + std::to_string(plan.cascade) + "%, keys " +
      std::to_string(plan.keys_per_request) + ", snapshots " +
      std::to_string(plan.snapshot_age_ms) + " ms old\n";
  for (const auto& step : plan.steps)
    text += "  " + std::to_string(step.at_ms) + " ms: " + name(step.fault) + " node " +
            std::to_string(step.node) + " for " + std::to_string(step.duration_ms) +
            " ms, detail " + std::to_string(step.detail) + "\n";
  return text;
}

}  // namespace drun::simulation
