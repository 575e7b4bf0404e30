// Which settings must be the same on all nodes.
#include "rendezvous/agreement.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

Config config() {
  Config s;
  s.min_nodes = 2;
  s.max_nodes = 4;
  s.max_restarts = 3;
  return s;
}

// The only field of the agreement that this change of a setting changes, and its value.
template <typename Change>
std::string changed(const Change& change) {
  const auto before = full_agreement(config());
  Config other = config();
  change(other);
  std::string result;
  for (const auto& [name, value] : full_agreement(other)) {
    const auto known = before.find(name);
    if (known == before.end() || known->second != value)
      result += (result.empty() ? "" : ", ") + name + "=" + value;
  }
  return result;
}

TEST(AgreementTest, HasTheSettingsThatMustBeTheSame) {
  const std::map<std::string, std::string> plain{
      {"protocol", "1"},           {"nnodes", "2:4"},      {"max-restarts", "3"},
      {"max-losses", "unlimited"}, {"rank-order", "keep"}, {"resize", "now"}};
  EXPECT_EQ(full_agreement(config()), plain);
  EXPECT_EQ(changed([](Config& s) { s.agreement["tee"] = "3"; }), "tee=3");
  EXPECT_EQ(changed([](Config& s) { s.max_nodes = 5; }), "nnodes=2:5");
  EXPECT_EQ(changed([](Config& s) { s.node_step = 2; }), "nnodes=2:4:2");
  EXPECT_EQ(changed([](Config& s) { s.min_nodes = 4, s.node_step = 2; }), "nnodes=4");
  EXPECT_EQ(changed([](Config& s) { s.max_restarts = 7; }), "max-restarts=7");
  EXPECT_EQ(changed([](Config& s) { s.max_losses = 7; }), "max-losses=7");
  EXPECT_EQ(changed([](Config& s) { s.min_runtime = Milliseconds(2'000); }), "min-runtime=2s");
  EXPECT_EQ(changed([](Config& s) { s.hang_timeout = Milliseconds(1'500); }),
            "hang-timeout=1500ms");
  EXPECT_EQ(changed([](Config& s) { s.rank_order = RankOrder::Topology; }), "rank-order=topology");
  EXPECT_EQ(changed([](Config& s) { s.resize = Resize::Restart; }), "resize=restart");
}

}  // namespace
}  // namespace drun::rendezvous
