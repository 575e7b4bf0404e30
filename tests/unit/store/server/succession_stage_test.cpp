// A store's succession as a table: how a server that is to succeed a lost store comes to serve.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "store/server/succession.hpp"
#include "support/state_table.hpp"

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};
constexpr const char* kJob = "drun/a/";

// Agents of a round of three nodes, "a" to "c", and one that has no place, "s".
class StageMachine {
 public:
  StageMachine() : succession({true, 0, "", {}, false, Milliseconds(0)}, table) {}

  Budget budget{1'000'000};
  KeyTable table{budget};
  StoreSuccession succession;
  Time now = kStart;

  void come(char name) {
    Agent& self = agent(name);
    if (self.waits || succession.is_serving()) return;  // who serves lets it in at once
    self.waits = true;
    Vote vote;
    if (name != 's') vote.settled = place(name);
    self.number = succession.apply(self, {1'000, 200, 1, kJob, std::move(vote), 0}, now);
  }
  void confirm(char name) {
    if (agent(name).waits) succession.confirm_call(agent(name).number, agent(name).call, now);
  }
  void withdraw(char name) {
    if (std::exchange(agent(name).waits, false)) succession.withdraw(agent(name).number, now);
  }
  void die(char name) { succession.gone({1, kJob, {place(name), {}}}, now, now); }
  void hear(std::uint64_t generation, const char* host) {
    succession.hear({generation, host, 1, kJob, 0}, now);
  }
  void point_to(std::uint64_t generation) {
    (void)succession.point_to(generation, {"10.0.0.8", 1}, now);
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Gathering", "Calling", "Serving"};
    return kNames[static_cast<int>(succession.stage())];
  }
  std::string news() {
    const auto moved = succession.elsewhere(kJob, now);
    std::string is = state();
    if (moved.generation > 0) is += ", elsewhere " + std::to_string(moved.generation);
    return news_(is, std::exchange(did_, {}));
  }

 private:
  class Agent final : public Applicant {
   public:
    StageMachine* machine = nullptr;
    char name = ' ';
    VoterId number = 0;
    std::uint64_t call = 0;
    bool waits = false;

    void on_call(const control::Pulsed& pulsed) override {
      call = pulsed.stamp;
      machine->tell(std::string("calls ") + name + " to " + std::to_string(pulsed.generation));
    }
    SessionId on_welcome(Time /*now*/) override {
      waits = false;
      machine->tell(std::string("welcomes ") + name);
      return static_cast<SessionId>(number);
    }
    void on_moved(const control::Moved& moved) override {
      waits = false;
      machine->tell(std::string("sends ") + name + " to " + std::string(moved.host));
    }
  };

  static Place place(char name) { return {{1, 1}, static_cast<std::uint32_t>(name - 'a'), 3, 0}; }
  Agent& agent(char name) {
    Agent& agent = agents_[static_cast<std::size_t>(name == 's' ? 3 : name - 'a')];
    agent.machine = this;
    agent.name = name;
    return agent;
  }
  void tell(const std::string& what) { did_ += ", " + what; }

  std::array<Agent, 4> agents_;
  std::string did_;
  test::News news_;
};

const test::TableEvents<StageMachine> kEvents = {
    {"a comes", [](StageMachine& m) { m.come('a'); }},
    {"b comes", [](StageMachine& m) { m.come('b'); }},
    {"s comes", [](StageMachine& m) { m.come('s'); }},
    {"a says that it knows", [](StageMachine& m) { m.confirm('a'); }},
    {"b says that it knows", [](StageMachine& m) { m.confirm('b'); }},
    {"b goes", [](StageMachine& m) { m.withdraw('b'); }},
    {"b has died", [](StageMachine& m) { m.die('b'); }},
    {"c has died", [](StageMachine& m) { m.die('c'); }},
    {"others say: a store of generation 5", [](StageMachine& m) { m.hear(5, "10.0.0.5"); }},
    {"others say: no address", [](StageMachine& m) { m.hear(5, "five"); }},
    {"the agent knows one of generation 7", [](StageMachine& m) { m.point_to(7); }},
    {"the agent knows of none", [](StageMachine& m) { m.point_to(0); }},
    {"time passes", [](StageMachine& m) {
       m.now += JobPlaces::kHearsay;
       m.succession.on_time(m.now);
     }}};

const std::vector<test::StateRow> kTable = {
    {"Gathering, nobody is there", {}, R"(
  others say: a store of generation 5 -> Gathering, elsewhere 5
  a comes; b comes; s comes; a says that it knows; b says that it knows; b goes; b has died; c
      has died; others say: no address; the agent knows one of generation 7; the agent knows of
      none; time passes -> nothing
)"},
    {"Gathering, one of three is there", {"a comes"}, R"(
  b comes -> Calling, calls a to 2, calls b to 2
  b has died; c has died -> Calling, calls a to 2
  others say: a store of generation 5 -> Gathering, elsewhere 5, sends a to 10.0.0.5
  the agent knows one of generation 7 -> Gathering, elsewhere 7, sends a to 10.0.0.8
  a comes; s comes; a says that it knows; b says that it knows; b goes; others say: no address;
      the agent knows of none; time passes -> nothing
)"},
    {"Gathering, the store is elsewhere",
     {"a comes", "others say: a store of generation 5", "b comes"},
     R"(
  others say: a store of generation 5 -> Gathering, elsewhere 5, sends b to 10.0.0.5
  the agent knows one of generation 7 -> Gathering, elsewhere 7, sends b to 10.0.0.8
  the agent knows of none; time passes -> Gathering
  a comes; b comes; s comes; a says that it knows; b says that it knows; b goes; b has died; c
      has died; others say: no address -> nothing
)"},
    {"Calling", {"a comes", "s comes", "b comes"}, R"(
  others say: a store of generation 5 -> Calling, elsewhere 5, sends a to 10.0.0.5, sends s to
      10.0.0.5, sends b to 10.0.0.5
  the agent knows one of generation 7 -> Calling, elsewhere 7, sends a to 10.0.0.8, sends s to
      10.0.0.8, sends b to 10.0.0.8
  a comes; b comes; s comes; a says that it knows; b says that it knows; b goes; b has died; c
      has died; others say: no address; the agent knows of none; time passes -> nothing
)"},
    {"Calling, one has confirmed", {"a comes", "s comes", "b comes", "a says that it knows"}, R"(
  b says that it knows; b has died; c has died -> Serving, welcomes a, calls s to 2, welcomes s,
      welcomes b
  others say: a store of generation 5 -> Calling, elsewhere 5, sends a to 10.0.0.5, sends s to
      10.0.0.5, sends b to 10.0.0.5
  the agent knows one of generation 7 -> Calling, elsewhere 7, sends a to 10.0.0.8, sends s to
      10.0.0.8, sends b to 10.0.0.8
  a comes; b comes; s comes; a says that it knows; b goes; others say: no address; the agent
      knows of none; time passes -> nothing
)"},
    {"Serving", {"a comes", "b comes", "a says that it knows", "b says that it knows"}, R"(
  others say: a store of generation 5 -> Serving, elsewhere 5
  a comes; b comes; s comes; a says that it knows; b says that it knows; b goes; b has died; c
      has died; others say: no address; the agent knows one of generation 7; the agent knows of
      none; time passes -> nothing
)"}};

TEST(SuccessionStageTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Gathering", "Calling", "Serving"});
}

}  // namespace
}  // namespace drun::store
