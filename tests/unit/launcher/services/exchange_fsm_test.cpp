#include "launcher/services/exchange_fsm.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::launcher {
namespace {

// Of two nodes.
class ExchangeMachine {
 public:
  ExchangeFsm fsm{2};
  ExchangeFsm::Step did = ExchangeFsm::Step::None;

  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Resting", "Connecting", "Exchanging", "Pausing"};
    return kNames[static_cast<int>(fsm.state())];
  }
  std::string news() {
    constexpr const char* kSteps[] = {
        "",         ", answers itself",   ", connects", ", tells and hears",
        ", pauses", ", warns and pauses", ", delivers"};
    return news_(state(), kSteps[static_cast<int>(std::exchange(did, ExchangeFsm::Step::None))]);
  }

 private:
  test::News news_;
};

const test::TableEvents<ExchangeMachine> kEvents = {
    {"begin", [](ExchangeMachine& m) { m.did = m.fsm.begin(false); }},
    {"begin, connected", [](ExchangeMachine& m) { m.did = m.fsm.begin(true); }},
    {"connected", [](ExchangeMachine& m) { m.did = m.fsm.on_connected(true); }},
    {"not connected", [](ExchangeMachine& m) { m.did = m.fsm.on_connected(false); }},
    {"the texts", [](ExchangeMachine& m) { m.did = m.fsm.on_texts(true); }},
    {"no texts", [](ExchangeMachine& m) { m.did = m.fsm.on_texts(false); }},
    {"the pause is over", [](ExchangeMachine& m) { m.did = m.fsm.on_pause_over(false); }},
    {"the pause is over, connected",
     [](ExchangeMachine& m) { m.did = m.fsm.on_pause_over(true); }}};

const std::vector<test::StateRow> kTable = {
    {"Resting", {}, R"(
  begin -> Connecting, connects
  begin, connected -> Exchanging, tells and hears
  connected; not connected; the texts; no texts; the pause is over; the pause is over, connected
      -> nothing
)"},
    {"Resting, after an exchange",
     {"begin", "not connected", "the pause is over, connected", "the texts"},
     R"(
  begin -> Connecting, connects
  begin, connected -> Exchanging, tells and hears
  connected; not connected; the texts; no texts; the pause is over; the pause is over, connected
      -> nothing
)"},
    {"Connecting", {"begin"}, R"(
  connected -> Exchanging, tells and hears
  not connected -> Pausing, warns and pauses
  begin; begin, connected; the texts; no texts; the pause is over; the pause is over, connected
      -> nothing
)"},
    {"Connecting, again", {"begin", "not connected", "the pause is over"}, R"(
  connected -> Exchanging, tells and hears
  not connected -> Pausing, pauses
  begin; begin, connected; the texts; no texts; the pause is over; the pause is over, connected
      -> nothing
)"},
    {"Exchanging", {"begin, connected"}, R"(
  the texts -> Resting, delivers
  no texts -> Pausing, warns and pauses
  begin; begin, connected; connected; not connected; the pause is over; the pause is over,
      connected -> nothing
)"},
    {"Pausing", {"begin, connected", "no texts"}, R"(
  the pause is over -> Connecting, connects
  the pause is over, connected -> Exchanging, tells and hears
  begin; begin, connected; connected; not connected; the texts; no texts -> nothing
)"}};

TEST(ExchangeFsmTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Resting", "Connecting", "Exchanging", "Pausing"});
}

TEST(ExchangeFsmTest, ANodeThatIsAloneAnswersItself) {
  ExchangeFsm fsm(1);
  EXPECT_EQ(fsm.begin(false), ExchangeFsm::Step::Answer);
  EXPECT_EQ(fsm.state(), ExchangeFsm::State::Resting);
}

}  // namespace
}  // namespace drun::launcher
