#include "launcher/backend/backend_fsm.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/backend/backend_settings.hpp"

namespace drun::launcher {
namespace {

using enum BackendState;
using rendezvous::End;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr BackendFsm::Time kStart{seconds(1000)};
constexpr seconds kJoinTimeout{60};
constexpr const char* kHolder = "; port 29400 is held by process 1 (init)";

Options elastic() {
  Options options;
  options.backend = Backend::C10d;
  options.min_nodes = 2;
  options.max_nodes = 2;
  options.endpoint = {"head", 29400};
  options.conf.join_timeout = kJoinTimeout;
  return options;
}

std::string name_of(const BackendStep& step) {
  struct Namer {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(const LookUp&) const { return "look up"; }
    std::string operator()(const Found&) const { return "found"; }
    std::string operator()(const BindRendezvous&) const { return "bind"; }
    std::string operator()(const GoAlone&) const { return "go alone"; }
    std::string operator()(const Connect& connect) const {
      return "connect to " + to_string(connect.endpoint);
    }
    std::string operator()(const Follow& follow) const {
      return "follow to " + to_string(follow.endpoint);
    }
    std::string operator()(const Wait&) const { return "wait"; }
    std::string operator()(const StartOver&) const { return "start over"; }
    std::string operator()(const Join&) const { return "join"; }
    std::string operator()(const GiveUp& give_up) const {
      return "give up: " + std::to_string(give_up.outcome.exit_code);
    }
  };
  return std::visit(Namer{}, step);
}

// A machine and its time.
struct Machine {
  explicit Machine(Options given = elastic()) : options(std::move(given)) {}

  Options options;
  BackendFsm::Time now = kStart;
  BackendFsm fsm{options, kStart, [] { return kHolder; }};
};

using Event = std::function<BackendStep(Machine&)>;

BackendStep quietly(const std::function<void()>& call) {
  call();
  return {};
}

const std::map<std::string, Event> kEvents = {
    {"start", [](Machine& m) { return m.fsm.start(m.now); }},
    {"resolved: own", [](Machine& m) { return m.fsm.on_resolved(true, m.now); }},
    {"resolved: other", [](Machine& m) { return m.fsm.on_resolved(false, m.now); }},
    {"unresolved", [](Machine& m) { return m.fsm.on_unresolved("no such name", m.now); }},
    {"bound",
     [](Machine& m) {
       return m.fsm.on_bound({"127.0.0.1", 29400}, m.now);
     }},
    {"port in use", [](Machine& m) { return m.fsm.on_bind_failed(true, "in use", m.now); }},
    {"bind failed", [](Machine& m) { return m.fsm.on_bind_failed(false, "denied", m.now); }},
    {"unusable", [](Machine& m) { return m.fsm.on_unusable("no port", m.now); }},
    {"link up", [](Machine& m) { return m.fsm.on_link_up(); }},
    {"link down: unknown", [](Machine& m) { return m.fsm.on_link_down("closed", true, m.now); }},
    {"link down: known", [](Machine& m) { return m.fsm.on_link_down("closed", false, m.now); }},
    {"moved",
     [](Machine& m) {
       return m.fsm.on_moved({"10.0.0.9", 7}, m.now);
     }},
    {"link failed", [](Machine& m) { return m.fsm.on_link_failed("refused", false, m.now); }},
    {"link failed: unknown",
     [](Machine& m) { return m.fsm.on_link_failed("refused", true, m.now); }},
    {"link closed", [](Machine& m) { return quietly([&] { m.fsm.on_link_closed(); }); }},
    {"early",
     [](Machine& m) {
       if (m.fsm.next_deadline()) m.now = *m.fsm.next_deadline() - milliseconds(1);
       return m.fsm.on_time("refused", m.now);
     }},
    {"due",
     [](Machine& m) {
       m.now = m.fsm.next_deadline().value_or(m.now + seconds(1));
       return m.fsm.on_time("refused", m.now);
     }},
    {"leave", [](Machine& m) { return quietly([&] { m.fsm.leave(); }); }},
};

BackendStep feed(Machine& machine, const std::vector<std::string>& events) {
  BackendStep last;
  for (const auto& event : events)
    last = kEvents.at(event)(machine);
  return last;
}

struct Row {
  BackendState state;
  std::vector<std::string> way;  // from Idle
  bool alone = false;
  // What changes something: the step, and the state behind it. All other events change nothing.
  struct Reaction {
    std::string step;
    BackendState state;
  };
  std::map<std::string, Reaction> reactions;
  bool several = false;  // endpoints
};

const std::vector<Row> kTable = {
    {Idle, {}, false, {{"start", {"look up", Resolving}}, {"leave", {"-", Over}}}},
    {Resolving,
     {"start"},
     false,
     {{"resolved: own", {"bind", Binding}},
      {"resolved: other", {"connect to head:29400", Connecting}},
      {"unresolved", {"wait", Pausing}},
      {"due", {"give up: 124", Over}},
      {"leave", {"-", Over}}}},
    {Binding,
     {"start", "resolved: own"},
     false,
     {{"bound", {"connect to 127.0.0.1:29400", Opening}},
      {"port in use", {"connect to head:29400", Contending}},
      {"bind failed", {"give up: 125", Over}},
      {"unusable", {"give up: 125", Over}},
      {"leave", {"-", Over}}}},
    {Pausing,
     {"start", "unresolved"},
     false,
     {{"due", {"look up", Resolving}}, {"leave", {"-", Over}}}},
    {Founding,
     {"start"},
     false,
     {{"link up", {"join", Joined}}, {"due", {"wait", Founding}}, {"leave", {"-", Over}}},
     true},
    {Connecting,
     {"start", "resolved: other"},
     false,
     {{"link up", {"join", Joined}},
      {"moved", {"follow to 10.0.0.9:7", Following}},
      {"link failed", {"give up: 125", Over}},
      {"link failed: unknown", {"give up: 125", Over}},
      {"due", {"wait", Connecting}},
      {"leave", {"-", Over}}}},
    {Contending,
     {"start", "resolved: own", "port in use"},
     false,
     {{"bound", {"connect to 127.0.0.1:29400", Opening}},
      {"port in use", {"wait", Contending}},
      {"bind failed", {"wait", Contending}},
      {"unusable", {"give up: 125", Over}},
      {"link up", {"join", Joined}},
      {"moved", {"follow to 10.0.0.9:7", Following}},
      {"link failed", {"give up: 125", Over}},
      {"link failed: unknown", {"give up: 125", Over}},
      {"due", {"bind", Contending}},
      {"leave", {"-", Over}}}},
    {Opening,
     {"start", "resolved: own", "bound"},
     false,
     {{"link up", {"join", Hosting}},
      {"moved", {"follow to 10.0.0.9:7", Following}},
      {"link failed", {"give up: 125", Over}},
      {"link failed: unknown", {"give up: 125", Over}},
      {"due", {"wait", Opening}},
      {"leave", {"-", Over}}}},
    {Following,
     {"start", "resolved: own", "bound", "moved"},
     false,
     {{"link up", {"join", Joined}},
      {"moved", {"follow to 10.0.0.9:7", Following}},
      {"link down: unknown", {"start over", Pausing}},
      {"link down: known", {"start over", Pausing}},
      {"due", {"start over", Pausing}},
      {"leave", {"-", Over}}}},
    {Alone,
     {"start"},
     true,
     {{"unusable", {"give up: 125", Over}},
      {"link up", {"join", Hosting}},
      {"leave", {"-", Over}}}},
    {Joined,
     {"start", "resolved: other", "link up"},
     false,
     {{"unusable", {"give up: 125", Over}},
      {"link down: unknown", {"start over", Pausing}},
      {"link failed", {"-", Lost}},
      {"link failed: unknown", {"-", Lost}},
      {"link closed", {"-", Closed}}}},
    {Hosting,
     {"start", "resolved: own", "bound", "link up"},
     false,
     {{"link failed", {"-", Lost}},
      {"link failed: unknown", {"-", Lost}},
      {"link closed", {"-", Closed}}}},
    {Lost, {"start", "resolved: other", "link up", "link failed"}, false, {}},
    {Closed, {"start", "resolved: other", "link up", "link closed"}, false, {}},
    {Over, {"leave"}, false, {}},
};

TEST(BackendFsmTest, EveryEventInEveryState) {
  for (const auto& row : kTable) {
    for (const auto& [name, event] : kEvents) {
      SCOPED_TRACE("state " + std::to_string(static_cast<int>(row.state)) + ", " + name);
      Options options = elastic();
      if (row.alone) options.backend = Backend::Standalone;
      if (row.several) options.endpoints = {{"head", 29400}, {"next", 29400}};
      Machine machine(options);
      feed(machine, row.way);
      ASSERT_EQ(machine.fsm.state(), row.state);
      const auto found = row.reactions.find(name);
      const Row::Reaction expected =
          found == row.reactions.end() ? Row::Reaction{"-", row.state} : found->second;
      EXPECT_EQ(name_of(event(machine)), expected.step);
      EXPECT_EQ(machine.fsm.state(), expected.state);
    }
  }
}

TEST(BackendFsmTest, TheTableHasEveryState) {
  ASSERT_EQ(kTable.size(), static_cast<std::size_t>(Over) + 1);
  for (std::size_t i = 0; i < kTable.size(); ++i)
    EXPECT_EQ(static_cast<std::size_t>(kTable[i].state), i);
}

TEST(BackendFsmTest, PlacesThatPointToOneAnotherAreNotFollowedForEver) {
  Machine machine;
  EXPECT_EQ(name_of(feed(machine, {"start", "resolved: other", "moved", "moved", "moved"})),
            "follow to 10.0.0.9:7");
  EXPECT_EQ(name_of(feed(machine, {"moved", "moved"})), "start over");
  EXPECT_EQ(name_of(feed(machine, {"due", "resolved: other", "moved", "moved"})),
            "follow to 10.0.0.9:7");
}

TEST(BackendFsmTest, APlaceThatGivesNoAnswerIsFollowedForTwoSeconds) {
  Machine machine;
  feed(machine, {"start", "resolved: other", "moved"});
  ASSERT_EQ(machine.fsm.state(), Following);
  EXPECT_EQ(machine.fsm.next_deadline(), machine.now + seconds(2));
}

// ---- who hosts ----

struct Choice {
  const char* what;
  Backend backend;
  std::optional<bool> is_host;
  std::optional<int> node_rank;
  int max_nodes;
  bool hosts_own;    // if the endpoint is one of this machine's addresses
  bool hosts_other;  // if it is not
};

constexpr auto kUnset = std::nullopt;
const std::vector<Choice> kChoices = {
    {"elastic", Backend::C10d, kUnset, kUnset, 2, true, false},
    {"elastic, with a node rank", Backend::C10d, kUnset, 1, 2, true, false},
    {"elastic, one node", Backend::C10d, kUnset, kUnset, 1, true, false},
    {"told to host", Backend::C10d, true, kUnset, 2, true, true},
    {"static, told to host", Backend::Static, true, 1, 2, true, true},
    {"static, rank 0", Backend::Static, kUnset, 0, 2, true, true},
    {"static, rank 1", Backend::Static, kUnset, 1, 2, false, false},
    {"static, no rank", Backend::Static, kUnset, kUnset, 2, true, false},
    {"static, one node", Backend::Static, kUnset, kUnset, 1, true, true},
};

TEST(BackendFsmTest, HostsWhereTheEndpointSays) {
  for (const auto& choice : kChoices) {
    SCOPED_TRACE(choice.what);
    Options options = elastic();
    options.backend = choice.backend;
    options.conf.is_host = choice.is_host;
    options.node_rank = choice.node_rank;
    options.max_nodes = choice.max_nodes;
    for (const bool own : {true, false}) {
      Machine machine(options);
      feed(machine, {"start"});
      const auto step = machine.fsm.on_resolved(own, machine.now);
      EXPECT_EQ(std::holds_alternative<BindRendezvous>(step),
                own ? choice.hosts_own : choice.hosts_other)
          << own;
    }
  }
}

TEST(BackendFsmTest, AsksForNoAddressIfItIsToldNotToHost) {
  Options options = elastic();
  options.conf.is_host = false;
  Machine machine(options);
  EXPECT_EQ(name_of(feed(machine, {"start"})), "connect to head:29400");
}

TEST(BackendFsmTest, SaysSoWhenItHostsAtAnAddressThatIsNotItsOwn) {
  Options options = elastic();
  options.backend = Backend::Static;
  options.node_rank = 0;
  const auto note = [&options](bool own) {
    Machine machine(options);
    feed(machine, {"start"});
    return std::get<BindRendezvous>(machine.fsm.on_resolved(own, machine.now)).note;
  };
  EXPECT_EQ(note(true), "");
  EXPECT_EQ(note(false),
            "head is no address of this machine: node rank 0 carries the store on all of its own; "
            "a node that has it must be node rank 0 itself");
  options.max_nodes = 1;
  EXPECT_THAT(note(false), Not(HasSubstr("a node that has it")));
  options.conf.is_host = true;  // the user knows
  EXPECT_EQ(note(false), "");
}

// The agent that it replaces on this machine may still be leaving.
TEST(BackendFsmTest, WhoIsToldToHostWaitsALittleForThePortAndJoinsNobodyElse) {
  Options options = elastic();
  options.conf.is_host = true;
  Machine machine(options);
  auto step = feed(machine, {"start", "resolved: own", "port in use"});
  EXPECT_EQ(std::get<Wait>(step).text,
            std::string("waiting 00:00 (01:00 left): in use") + kHolder + "; trying again");
  EXPECT_EQ(machine.fsm.state(), Pausing);
  EXPECT_EQ(name_of(feed(machine, {"due", "resolved: own"})), "bind");
  EXPECT_EQ(name_of(feed(machine, {"port in use"})), "wait");
  machine.now = kStart + seconds(10) - milliseconds(1);
  EXPECT_EQ(name_of(feed(machine, {"due", "resolved: own"})), "bind");
  machine.now = kStart + seconds(10);
  step = feed(machine, {"port in use"});
  EXPECT_EQ(std::get<GiveUp>(step).outcome.text, std::string("in use") + kHolder);
}

// Else it would try again and again, or blame the name.
TEST(BackendFsmTest, TheJoinTimeoutEndsTheWaitForThePort) {
  Options options = elastic();
  options.conf.is_host = true;
  options.conf.join_timeout = seconds(2);
  Machine machine(options);
  BackendStep step = feed(machine, {"start", "resolved: own", "port in use"});
  for (int tries = 0; tries < 20 && !std::holds_alternative<GiveUp>(step); ++tries) {
    step = feed(machine, {"due"});
    if (machine.fsm.state() == Resolving) step = feed(machine, {"resolved: own", "port in use"});
  }
  EXPECT_EQ(machine.now, kStart + seconds(2));
  EXPECT_EQ(std::get<GiveUp>(step).outcome.text, std::string("in use") + kHolder);
}

TEST(BackendFsmTest, WhoIsToldToHostTakesAPortThatBecomesFree) {
  Options options = elastic();
  options.conf.is_host = true;
  Machine machine(options);
  feed(machine, {"start", "resolved: own", "port in use", "due", "resolved: own", "bound"});
  EXPECT_EQ(machine.fsm.state(), Opening);
}

// ---- names ----

TEST(BackendFsmTest, AsksForANameAgainAfterGrowingPauses) {
  Machine machine;
  feed(machine, {"start"});
  std::vector<BackendFsm::Time::duration> pauses;
  for (int i = 0; i < 12; ++i) {
    const auto before = machine.now;
    const auto step = feed(machine, {"unresolved"});
    EXPECT_THAT(std::get<Wait>(step).text,
                HasSubstr(": cannot resolve 'head': no such name; trying again"));
    EXPECT_EQ(name_of(feed(machine, {"due"})), "look up");
    pauses.push_back(machine.now - before);
  }
  EXPECT_EQ(pauses[0], milliseconds(250));
  EXPECT_EQ(pauses[1], milliseconds(375));
  EXPECT_EQ(pauses.back(), seconds(5));
}

TEST(BackendFsmTest, GivesANameUpAtTheJoinTimeoutWithTheLastAnswer) {
  Machine machine;
  feed(machine, {"start"});
  machine.now = kStart + kJoinTimeout - milliseconds(100);
  feed(machine, {"unresolved"});
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kJoinTimeout);
  const auto outcome = std::get<GiveUp>(feed(machine, {"due"})).outcome;
  EXPECT_EQ(outcome.end, End::Timeout);
  EXPECT_EQ(outcome.text, "cannot resolve 'head': no such name; check --rdzv-endpoint");
}

TEST(BackendFsmTest, GivesANameUpThatNobodyAnswersFor) {
  Machine machine;
  feed(machine, {"start"});
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kJoinTimeout);
  EXPECT_EQ(std::get<GiveUp>(feed(machine, {"due"})).outcome.text,
            "cannot resolve 'head': no answer; check --rdzv-endpoint");
}

TEST(BackendFsmTest, ANameThatIsGivenUpIsThatOfTheFlagThatWasGiven) {
  Machine machine;
  machine.options.endpoint_flag = "--master-addr";
  feed(machine, {"start"});
  EXPECT_EQ(std::get<GiveUp>(feed(machine, {"due"})).outcome.text,
            "cannot resolve 'head': no answer; check --master-addr");
}

TEST(BackendFsmTest, AnAnswerAtTheJoinTimeoutIsTheLast) {
  Machine machine;
  feed(machine, {"start"});
  machine.now = kStart + kJoinTimeout;
  EXPECT_EQ(name_of(feed(machine, {"unresolved"})), "give up: 124");
}

// ---- the link ----

TEST(BackendFsmTest, ConnectsForAsLongAsIsLeft) {
  Machine machine;
  feed(machine, {"start"});
  machine.now += seconds(10);
  EXPECT_EQ(std::get<Connect>(feed(machine, {"resolved: other"})).limit, seconds(50));
  Machine late;
  feed(late, {"start"});
  late.now += seconds(70);
  EXPECT_EQ(std::get<Connect>(feed(late, {"resolved: other"})).limit, seconds(0));
}

TEST(BackendFsmTest, SaysTwiceASecondWhatAConnectionWaitsFor) {
  Machine machine;
  feed(machine, {"start", "resolved: other"});
  machine.now += seconds(41) + milliseconds(500);
  EXPECT_EQ(std::get<Wait>(machine.fsm.on_time("", machine.now)).text,
            "waiting 00:41 (00:19 left): the store at head:29400: no answer yet");
  EXPECT_EQ(machine.fsm.next_deadline(), machine.now + milliseconds(500));
  machine.now += milliseconds(500);
  EXPECT_EQ(std::get<Wait>(machine.fsm.on_time("Connection refused", machine.now)).text,
            "waiting 00:42 (00:18 left): the store at head:29400: Connection refused");
}

TEST(BackendFsmTest, TriesToHostAfterAllWhileThePortIsTaken) {
  Machine machine;
  feed(machine, {"start", "resolved: own", "port in use"});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(name_of(feed(machine, {"due"})), "bind");
    EXPECT_THAT(std::get<Wait>(feed(machine, {"port in use"})).text,
                HasSubstr(std::string("the store at head:29400: refused") + kHolder));
  }
  EXPECT_EQ(name_of(feed(machine, {"due", "bound"})), "connect to 127.0.0.1:29400");
  EXPECT_EQ(name_of(feed(machine, {"link up"})), "join");
  EXPECT_EQ(machine.fsm.state(), Hosting);
}

TEST(BackendFsmTest, AdvisesToWaitLongerIfOnlyTheTimeEndedIt) {
  Machine machine;
  feed(machine, {"start", "resolved: other"});
  EXPECT_EQ(std::get<GiveUp>(feed(machine, {"link failed"})).outcome.text, "refused");
  Machine late;
  feed(late, {"start", "resolved: other"});
  late.now = kStart + kJoinTimeout - milliseconds(500);
  const auto outcome = std::get<GiveUp>(feed(late, {"link failed"})).outcome;
  EXPECT_EQ(outcome.end, End::Timeout);
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_EQ(outcome.text,
            "refused; start drun on the node that has this address, or wait longer with "
            "--rdzv-conf join_timeout=SECONDS");
}

TEST(BackendFsmTest, NamesWhoHasThePortInsteadOfAdvice) {
  Machine machine;
  feed(machine, {"start", "resolved: own", "port in use"});
  machine.now = kStart + kJoinTimeout;
  EXPECT_EQ(std::get<GiveUp>(feed(machine, {"link failed"})).outcome.text,
            std::string("refused") + kHolder);
}

TEST(BackendFsmTest, LooksAgainForAStoreThatWentAwayBeforeItKnewThisNode) {
  Machine machine;
  feed(machine, {"start", "resolved: other", "link up"});
  EXPECT_EQ(std::get<StartOver>(feed(machine, {"link down: unknown"})).text,
            "waiting 00:00 (01:00 left): the store at head:29400 went away before it knew this "
            "node: closed; "
            "looking for it again");
  EXPECT_FALSE(machine.fsm.has_joined());
  EXPECT_EQ(name_of(feed(machine, {"due", "resolved: own", "bound", "link up"})), "join");
  EXPECT_TRUE(machine.fsm.has_joined());
}

// It was stopped when it had just begun to serve, and the job has a later store since.
TEST(BackendFsmTest, WhoServesAtTheEndpointBeginsNoOtherStoreThere) {
  for (const char* trouble : {"due", "link down: unknown"}) {
    SCOPED_TRACE(trouble);
    Machine machine;
    feed(machine, {"start", "resolved: own", "bound", "moved"});
    if (trouble != std::string("due")) feed(machine, {"link up"});
    EXPECT_TRUE(std::get<StartOver>(feed(machine, {trouble})).serves_on);
    EXPECT_EQ(name_of(feed(machine, {"due"})), "connect to 127.0.0.1:29400");
    EXPECT_EQ(machine.fsm.state(), Opening);
    EXPECT_EQ(name_of(feed(machine, {"moved"})), "follow to 10.0.0.9:7");
    EXPECT_EQ(name_of(machine.fsm.on_time("no answer", kStart + kJoinTimeout)), "give up: 124");

    // Nobody looks for that store any more.
    Machine late;
    feed(late, {"start", "resolved: own", "bound", "moved"});
    const auto limits = succession_limits(late.options);
    late.now += limits.silence + limits.search;
    const auto step = late.fsm.on_time("no answer", late.now);
    EXPECT_FALSE(std::get<StartOver>(step).serves_on);
    EXPECT_EQ(name_of(feed(late, {"due"})), "look up");
  }
}

TEST(BackendFsmTest, DoesNotLookAgainPastTheJoinTimeout) {
  Machine machine;
  feed(machine, {"start", "resolved: other", "link up"});
  machine.now = kStart + kJoinTimeout;
  const auto outcome = std::get<GiveUp>(feed(machine, {"link down: unknown"})).outcome;
  EXPECT_EQ(outcome.end, End::Timeout);
  EXPECT_EQ(outcome.text, "the store at head:29400 went away before it knew this node: closed");
}

TEST(BackendFsmTest, ABrokenConnectionToAStoreThatKnowsThisNodeMends) {
  Machine machine;
  feed(machine, {"start", "resolved: other", "link up", "link down: known", "link up"});
  EXPECT_EQ(machine.fsm.state(), Joined);
}

// No node runs etcd, and its client looks up its names itself.
TEST(BackendFsmTest, AtEtcdEveryNodeIsAClient) {
  Options options = elastic();
  options.backend = Backend::Etcd;
  options.etcd.endpoints = {{"e1", 2379}, {"e2", 2379}};
  options.endpoint = options.etcd.endpoints.front();
  options.conf.is_host = true;
  Machine machine(options);
  EXPECT_EQ(name_of(feed(machine, {"start"})), "connect to e1:2379");
  EXPECT_EQ(machine.fsm.state(), Connecting);
  EXPECT_EQ(std::get<Wait>(feed(machine, {"due"})).text,
            "waiting 00:00 (01:00 left): etcd at e1:2379,e2:2379: refused");
  machine.now = kStart + kJoinTimeout;
  const auto outcome = std::get<GiveUp>(feed(machine, {"link failed"})).outcome;
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_THAT(outcome.text, HasSubstr("refused; check --rdzv-endpoint and that most members"));
}

// Its client goes on with the session that it has, as long as that may live; only then a new one is
// made.
TEST(BackendFsmTest, AtEtcdABrokenConnectionMendsAndALinkThatFailedIsReplaced) {
  Options options = elastic();
  options.backend = Backend::Etcd;
  options.etcd.endpoints = {{"e1", 2379}};
  options.endpoint = options.etcd.endpoints.front();
  Machine machine(options);
  feed(machine, {"start", "link up"});
  EXPECT_EQ(name_of(feed(machine, {"link down: unknown"})), "-");
  EXPECT_EQ(machine.fsm.state(), Joined);
  EXPECT_EQ(std::get<StartOver>(feed(machine, {"link failed: unknown"})).text,
            "waiting 00:00 (01:00 left): refused; trying again");
  EXPECT_EQ(name_of(feed(machine, {"due"})), "connect to e1:2379");
  feed(machine, {"link up"});
  EXPECT_EQ(name_of(feed(machine, {"link failed"})), "-");
  EXPECT_EQ(machine.fsm.state(), Lost);
  Machine late(options);
  feed(late, {"start", "link up"});
  late.now = kStart + kJoinTimeout;
  EXPECT_EQ(name_of(feed(late, {"link failed: unknown"})), "give up: 124");
}

TEST(BackendFsmTest, KeepsALinkThatIsUpWhenTheJobIsOver) {
  Machine machine;
  feed(machine, {"start", "resolved: other", "link up", "leave"});
  EXPECT_EQ(machine.fsm.state(), Joined);
  feed(machine, {"link closed"});
  EXPECT_EQ(machine.fsm.state(), Closed);
}

// ---- several endpoints ----

TEST(BackendFsmTest, SaysWhoseAgentsHaveToMeet) {
  Options options = elastic();
  options.endpoints = {{"a", 1}, {"b", 2}, {"c", 3}};
  Machine machine(options);
  feed(machine, {"start"});
  EXPECT_THAT(std::get<Wait>(feed(machine, {"due"})).text,
              HasSubstr("the store begins when the agents of 2 of 3 endpoints have met: refused"));
  (void)machine.fsm.on_time("refused", kStart + kJoinTimeout - milliseconds(100));
  EXPECT_EQ(machine.fsm.next_deadline(), kStart + kJoinTimeout);
  const auto outcome = std::get<GiveUp>(feed(machine, {"due"})).outcome;
  EXPECT_EQ(outcome.end, End::Timeout);
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_THAT(outcome.text, HasSubstr("; start drun on the nodes that have these addresses"));
}

}  // namespace
}  // namespace drun::launcher
