#include "simulation/succession/plan.hpp"

#include <algorithm>

#include "simulation/random.hpp"

namespace drun::simulation {
namespace {

int draw_endpoints(const SuccessionPlan& plan, Random& random) {
  if (plan.nodes < 3 || random.chance(50)) return 1;
  return plan.nodes >= 5 && random.chance(40) ? 5 : 3;
}

// Nodes start when others have been lost, as many as could be a job of their own, where they could
// begin one.
Blow draw_newcomers(const SuccessionPlan& plan, Random& random, int since) {
  Blow blow;
  blow.harm = Harm::Join;
  const int most[] = {100, 1'000, 7'000, 20'000};
  blow.at_ms = since + random.in(0, most[random.in(0, 3)]);
  blow.of_host = random.chance(80);
  blow.detail = random.chance(60) ? plan.max_nodes : random.in(1, plan.max_nodes);
  return blow;
}

// Nodes are lost one by one, with time to find a new majority in between, or two at once of five
// and more.
void draw_gentle(SuccessionPlan& plan, Random& random) {
  constexpr int kApart = 40'000;
  plan.nodes = random.in(3, 7);
  plan.max_nodes = plan.nodes;
  plan.endpoints = draw_endpoints(plan, random);
  const int most = plan.nodes >= 5 ? 2 : 1;
  plan.min_nodes = random.in(1, plan.nodes - most);
  plan.work_ms = random.in(1'000, 90'000);
  const int times = random.in(1, 2);
  int left = plan.nodes;
  for (int i = 0; i < times; ++i) {
    int at = i * kApart + random.in(3'000, 15'000);
    const int lost = std::min({left - plan.min_nodes, (left - 1) / 2, random.in(1, 2)});
    for (int k = 0; k < lost; ++k) {
      Blow blow;
      blow.at_ms = at;
      blow.of_host = random.chance(60);
      static constexpr Harm kLosses[] = {Harm::Kill,     Harm::Kill, Harm::Kill, Harm::PowerOff,
                                         Harm::PowerOff, Harm::Stop, Harm::Cut};
      // Not while others have just been lost: a leader that is cut off then may begin a round that
      // nobody else hears of (docs/rendezvous.md).
      const int kinds = lost == 1 ? static_cast<int>(std::size(kLosses)) : 5;
      blow.harm = kLosses[random.in(0, kinds - 1)];
      blow.duration_ms = random.chance(30) ? random.in(1, 5'000) : random.in(5'000, 60'000);
      blow.node = random.in(0, 1000);
      plan.blows.push_back(blow);
      if (k + 1 < lost) at += random.in(0, random.chance(50) ? 300 : 8'000);
    }
    left -= lost;
    if (lost > 0 && random.chance(50)) {
      plan.blows.push_back(draw_newcomers(plan, random, at));
      // What is told must come before a store that begins has listened for long enough.
      plan.max_delay_ms = std::min(plan.max_delay_ms, plan.endpoints > 1 ? 20 : 5);
    }
    // A failure that is not the last one allowed.
    if (plan.max_restarts > i && random.chance(40)) {
      Blow blow;
      blow.at_ms = i * kApart + random.in(500, 30'000);
      blow.harm = Harm::Fail;
      blow.node = random.in(0, 1000);
      plan.blows.push_back(blow);
    }
  }
}

// The node with the store is killed, and its guardian says so.
void draw_kill(SuccessionPlan& plan, Random& random) {
  plan.max_nodes = plan.nodes = random.in(3, 7);
  plan.min_nodes = random.in(1, plan.nodes - 1);
  plan.endpoints = draw_endpoints(plan, random);
  plan.work_ms = random.in(20'000, 60'000);
  plan.max_delay_ms = std::min(plan.max_delay_ms, 20);
  Blow blow;
  blow.at_ms = random.in(3'000, 8'000);
  blow.of_host = true;
  plan.blows.push_back(blow);
}

// The next one falls silent. That the first is dead was proven long ago, to all who may succeed it.
void draw_silence(SuccessionPlan& plan, Random& random) {
  plan.promise = Promise::InTime;
  plan.work_ms = 60'000;
  Blow blow;
  blow.at_ms = plan.blows.back().at_ms + random.in(8'000, 20'000);
  blow.of_host = true;
  blow.harm = Harm::PowerOff;
  plan.blows.push_back(blow);
}

void draw_five(SuccessionPlan& plan) {
  plan.nodes = plan.max_nodes = 5;
  plan.min_nodes = 1;
  plan.endpoints = 1;
  plan.host_is_spare = false;
  plan.work_ms = 60'000;
  plan.blows.clear();
}

// Two who cannot reach the node with the store have been silent for long when it is killed, and
// another one with it; whoever is left of those who were with it cannot reach the two.
void draw_apart(SuccessionPlan& plan, Random& random) {
  draw_five(plan);
  const int at = random.in(2'000, 6'000);
  const int silent = random.in(7'500, 9'500);
  for (const auto& [from, to] : {std::pair(1, 0), {2, 0}, {1, 4}, {2, 4}, {4, 1}, {4, 2}})
    plan.blows.push_back({at, Harm::OneWay, false, from, 40'000, to});
  plan.blows.push_back({at + silent, Harm::Kill, false, 0, 0, 0});
  plan.blows.push_back({at + silent, Harm::Kill, false, 2, 0, 0});  // of those who are left
}

// Who comes to the first successor is killed when that one counts on it. The two others hear of
// that, but reach neither, and meet at another successor.
void draw_called(SuccessionPlan& plan, Random& random) {
  draw_five(plan);
  const int at = random.in(2'000, 10'000);
  constexpr int kNothingComesToTheFirstThree = 0b111;
  plan.blows.push_back({at, Harm::Split, false, 0, 40'000, kNothingComesToTheFirstThree});
  plan.blows.push_back({at, Harm::Called, false, 0, 0, 0});
  plan.blows.push_back({at + random.in(0, 500), Harm::Kill, true, 0, 0, 0});
}

// The node with the store is in no round, and is lost.
void draw_untouched(SuccessionPlan& plan, Random& random) {
  plan.max_nodes = plan.min_nodes = random.in(2, 6);
  plan.nodes = plan.max_nodes + 1;
  plan.host_is_spare = true;
  plan.work_ms = random.in(10'000, 60'000);
  plan.max_delay_ms = std::min(plan.max_delay_ms, 20);  // else a lease may end before all have met
  Blow blow;
  blow.at_ms = random.in(3'000, 8'000);
  blow.of_host = true;
  blow.harm = random.chance(60) ? Harm::Kill : Harm::PowerOff;
  plan.blows.push_back(blow);
}

// The node with the store is lost, and one of the others is told to end the job before there is a
// next store.
void draw_ended(SuccessionPlan& plan, Random& random) {
  plan.max_nodes = plan.min_nodes = plan.nodes = random.in(3, 7);
  plan.endpoints = draw_endpoints(plan, random);
  plan.host_is_spare = false;
  plan.work_ms = 60'000;
  plan.max_delay_ms = std::min(plan.max_delay_ms, 20);
  Blow blow;
  blow.at_ms = random.in(3'000, 8'000);
  blow.of_host = true;
  blow.harm = random.chance(30) ? Harm::Kill : Harm::PowerOff;
  plan.blows = {blow};
  blow.at_ms += random.in(0, 6'000);
  blow.of_host = false;
  blow.harm = Harm::End;
  blow.node = random.in(0, 1000);
  plan.blows.push_back(blow);
}

// Most of the nodes are lost without a word. Who is left finds no majority, ends, and the job
// begins anew.
void draw_returns(SuccessionPlan& plan, Random& random) {
  plan.nodes = plan.max_nodes = random.in(3, 6);
  plan.min_nodes = random.in(1, plan.nodes);
  plan.endpoints = draw_endpoints(plan, random);
  plan.host_is_spare = random.chance(30);
  plan.nodes += plan.host_is_spare ? 1 : 0;
  plan.work_ms = random.in(20'000, 60'000);
  // What is told must come before a store that begins has listened for long enough.
  plan.max_delay_ms = std::min(plan.max_delay_ms, plan.endpoints > 1 ? 20 : 5);
  plan.blows.clear();
  Blow blow;
  blow.at_ms = random.in(3'000, 15'000);
  for (int i = random.in(plan.nodes / 2, plan.nodes); i > 0; --i) {
    blow.harm = random.chance(80) ? Harm::PowerOff : Harm::Kill;
    blow.of_host = !plan.host_is_spare && random.chance(40);
    blow.node = random.in(0, 1000);
    plan.blows.push_back(blow);
    blow.at_ms += random.in(0, random.chance(80) ? 300 : 12'000);
  }
}

void draw_wild(SuccessionPlan& plan, Random& random) {
  plan.nodes = random.in(2, 6);
  plan.max_nodes = random.in(std::max(1, plan.nodes - 2), plan.nodes);
  plan.min_nodes = random.chance(30) ? plan.max_nodes : random.in(1, plan.max_nodes);
  plan.endpoints = draw_endpoints(plan, random);
  plan.work_ms = random.in(1'000, 60'000);
  const int blows = random.in(1, random.chance(60) ? 4 : 10);
  for (int i = 0; i < blows; ++i) {
    static constexpr Harm kHarms[] = {
        Harm::Kill,  Harm::Kill,  Harm::PowerOff, Harm::Stop, Harm::Cut,  Harm::Cut,  Harm::Split,
        Harm::Split, Harm::Split, Harm::OneWay,   Harm::Fail, Harm::Join, Harm::Fail, Harm::Go};
    Blow blow;
    const int when = random.in(0, 3);
    blow.at_ms = when == 0                          ? random.in(0, 1'000)
                 : when == 1 && !plan.blows.empty() ? plan.blows.back().at_ms + random.in(0, 500)
                                                    : random.in(0, 2 * plan.work_ms);
    blow.harm = kHarms[random.in(0, static_cast<int>(std::size(kHarms)) - 1)];
    blow.of_host = random.chance(30);
    blow.node = random.in(0, 1000);
    blow.duration_ms = random.chance(40) ? random.in(1, 5'000) : random.in(3'000, 40'000);
    blow.detail = random.in(0, 1'000'000);
    if (blow.harm == Harm::Join) {
      blow.of_host = false;
      blow.detail = 1;
    }
    plan.blows.push_back(blow);
  }
  // Who was in touch when the nodes of the round changed?
  if (random.chance(30)) {
    static constexpr Harm kChanges[] = {Harm::Kill, Harm::Go, Harm::Join};
    static constexpr Harm kLosses[] = {Harm::Cut, Harm::Split, Harm::Stop, Harm::PowerOff};
    Blow blow;
    blow.at_ms = random.in(0, 10'000);
    blow.harm = kChanges[random.in(0, 2)];
    blow.node = random.in(0, 1000);
    blow.detail = 1;
    plan.blows.push_back(blow);
    for (int i = random.in(1, 2); i > 0; --i) {
      blow.at_ms += random.in(0, 2'500);
      blow.harm = kLosses[random.in(0, 3)];
      blow.of_host = random.chance(50);
      blow.node = random.in(0, 1000);
      blow.duration_ms = random.in(6'000, 40'000);
      blow.detail = random.in(0, 1'000'000);
      plan.blows.push_back(blow);
    }
  }
  // Who is stopped while a round begins reads of it when the others have gone on.
  if (random.chance(10))
    plan.blows.push_back({random.in(0, 4 * plan.max_delay_ms + 60), Harm::Stop, false,
                          random.in(0, 1000), random.in(6'000, 40'000), 0});
  // Newcomers at a single endpoint that the network keeps from everybody else could begin a job of
  // their own: so there are too few for two. Of several endpoints most are never new at once.
  if (random.chance(15) && plan.nodes > 2) {
    if (plan.endpoints == 1) {
      std::erase_if(plan.blows, [](const Blow& blow) { return blow.harm == Harm::Join; });
      plan.min_nodes = std::max(plan.min_nodes, (plan.nodes + 1) / 2 + 1);
      plan.max_nodes = std::max(plan.max_nodes, plan.min_nodes);
    }
    Blow blow;
    blow.at_ms = random.in(0, 2 * plan.work_ms);
    blow.harm = Harm::Return;
    blow.duration_ms = random.chance(50) ? random.in(1, 500) : random.in(1, 30'000);
    plan.blows.push_back(blow);
  }
}

const char* name(Harm harm) {
  static constexpr const char* kNames[] = {"kill",  "power off", "stop",   "cut",
                                           "split", "one way",   "fail",   "join",
                                           "go",    "return",    "called", "end"};
  return kNames[static_cast<int>(harm)];
}

}  // namespace

SuccessionPlan make_succession_plan(std::uint64_t seed) {
  Random random(seed ^ 0x5CCE55);
  SuccessionPlan plan;
  plan.seed = seed;
  plan.max_delay_ms = random.chance(50) ? 2 : random.in(1, 150);
  plan.max_restarts = random.in(0, 4);
  if (random.chance(5)) {
    plan.promise = Promise::Soon;
    draw_kill(plan, random);
  } else if (random.chance(5)) {
    plan.promise = Promise::NoNewRound;
    draw_untouched(plan, random);
  } else if (random.chance(40)) {
    plan.promise = Promise::Success;
    draw_gentle(plan, random);
  } else {
    draw_wild(plan, random);
    plan.host_is_spare = plan.max_nodes < plan.nodes && random.chance(50);
  }
  if (plan.promise == Promise::Nothing && random.chance(3))
    draw_apart(plan, random);
  else if (plan.promise == Promise::Nothing && random.chance(3))
    draw_called(plan, random);
  if (plan.promise == Promise::Soon && plan.nodes >= 4 && plan.min_nodes <= plan.nodes - 2 &&
      random.chance(50))
    draw_silence(plan, random);
  Random other(seed ^ 0xE4D);  // so that all other jobs stay what they were
  if (plan.promise == Promise::Nothing && other.chance(5)) {
    plan.promise = Promise::Ended;
    draw_ended(plan, other);
  }
  Random another(seed ^ 0x5E7);
  if (plan.promise == Promise::Nothing && another.chance(6)) {
    plan.promise = Promise::Returns;
    draw_returns(plan, another);
  }
  std::stable_sort(plan.blows.begin(), plan.blows.end(),
                   [](const Blow& a, const Blow& b) { return a.at_ms < b.at_ms; });
  return plan;
}

std::string describe(const SuccessionPlan& plan) {
  static constexpr const char* kPromises[] = {"",
                                              ", must succeed",
                                              ", must not be touched",
                                              ", must go on soon",
                                              ", must go on in time",
                                              ", must end when told",
                                              ", must come back"};
  std::string text =
      "seed " + std::to_string(plan.seed) + kPromises[static_cast<int>(plan.promise)] + ": " +
      std::to_string(plan.nodes) + " nodes of " + std::to_string(plan.min_nodes) + ":" +
      std::to_string(plan.max_nodes) + ", " + std::to_string(plan.endpoints) + " endpoints" +
      (plan.host_is_spare ? ", the host is a spare" : "") + ", restarts " +
      std::to_string(plan.max_restarts) + ", work " + std::to_string(plan.work_ms) + " ms, delay " +
      std::to_string(plan.max_delay_ms) + " ms\n";
  for (const auto& blow : plan.blows)
    text += "  " + std::to_string(blow.at_ms) + " ms: " + name(blow.harm) +
            (blow.of_host ? " of the host" : " node " + std::to_string(blow.node)) + " for " +
            std::to_string(blow.duration_ms) + " ms, detail " + std::to_string(blow.detail) + "\n";
  return text;
}

}  // namespace drun::simulation
