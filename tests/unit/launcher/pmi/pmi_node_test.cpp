#include "launcher/pmi/pmi_node.hpp"

#include <random>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

World world(int local_size, int nodes = 1) {
  World result;
  result.space = "kvs";
  result.local_size = local_size;
  result.nodes = nodes;
  result.world_size = local_size * nodes;
  return result;
}

// What a node wants, as text: "0: cmd=...", "exchange 1: ...", "fault 1 (7): ...".
std::vector<std::string> wanted(Node& node) {
  const Wanted all = node.take();
  std::vector<std::string> result;
  for (const auto& each : all.replies) {
    EXPECT_TRUE(each.bytes.ends_with("\n"));
    result.push_back(std::to_string(each.local_rank) + ": " +
                     each.bytes.substr(0, each.bytes.size() - 1));
  }
  if (all.exchange)
    result.push_back("exchange " + std::to_string(all.exchange->number) + ": " +
                     all.exchange->text);
  for (const auto& each : all.faults)
    result.push_back("fault " + std::to_string(each.local_rank) + " (" +
                     std::to_string(each.exit_code) + "): " + each.cause);
  return result;
}

std::vector<std::string> said(Node& node, int local_rank, const std::string& lines) {
  node.receive(local_rank, lines);
  return wanted(node);
}

constexpr const char* kInit = "cmd=init pmi_version=1 pmi_subversion=1\n";

void begin(Node& node, int workers) {
  for (int rank = 0; rank < workers; ++rank)
    node.receive(rank, kInit);
  (void)wanted(node);
}

TEST(PmiNodeTest, EachCommandHasItsAnswer) {
  Node node(world(2));
  begin(node, 2);
  struct Case {
    std::string command;
    std::string answer;
  };
  for (const Case& each : std::vector<Case>{
           {"cmd=init pmi_version=1 pmi_subversion=2",
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
           {"cmd=init pmi_version=2 pmi_subversion=0",
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1"},
           {"cmd=get_maxes", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"},
           {"cmd=get_appnum", "cmd=appnum rc=0 appnum=0"},
           {"cmd=get_universe_size", "cmd=universe_size rc=0 size=2"},
           {"cmd=get_my_kvsname", "cmd=my_kvsname rc=0 kvsname=kvs"},
           {"cmd=get kvsname=kvs key=PMI_process_mapping",
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))"},
           {"cmd=get kvsname=kvs key=k", "cmd=get_result rc=-1 msg=key_not_found value=unknown"},
           {"cmd=get kvsname=x key=k", "cmd=get_result rc=-1 msg=unknown_kvsname value=unknown"},
           {"cmd=put kvsname=kvs key=k value=v=w", "cmd=put_result rc=0 msg=success"},
           {"cmd=get kvsname=kvs key=k", "cmd=get_result rc=0 msg=success value=v=w"},
           {"cmd=put kvsname=kvs key=k value=x", "cmd=put_result rc=0 msg=success"},
           {"cmd=get kvsname=kvs key=k", "cmd=get_result rc=0 msg=success value=x"},
           {"cmd=put kvsname=x key=k value=v", "cmd=put_result rc=-1 msg=unknown_kvsname"},
           {"cmd=put kvsname=kvs value=v", "cmd=put_result rc=-1 msg=bad_key"},
           {"cmd=put kvsname=kvs value=v key=" + std::string(65, 'k'),
            "cmd=put_result rc=-1 msg=bad_key"},
           {"cmd=put kvsname=kvs key=k value=" + std::string(1'025, 'v'),
            "cmd=put_result rc=-1 msg=value_too_long"},
           {"cmd=barrier_in group=NODE", "cmd=barrier_out rc=-1 msg=groups_are_not_served"},
           {"cmd=publish_name service=s port=p",
            "cmd=publish_result info=failed rc=-1 msg=not_served"},
           {"cmd=lookup_name service=s", "cmd=lookup_result info=failed rc=-1 msg=not_served"},
           {"cmd=unpublish_name service=s",
            "cmd=unpublish_result info=failed rc=-1 msg=not_served"},
           {"mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nspawnssofar=1\nendcmd",
            "cmd=spawn_result rc=-1 errmsg=not_served"},
           {"mcmd=spawn\ntotspawns=2\nspawnssofar=1\nendcmd\n"
            "mcmd=spawn\ntotspawns=2\nspawnssofar=2\nendcmd",
            "cmd=spawn_result rc=-1 errmsg=not_served"},
           {"cmd=finalize", "cmd=finalize_ack rc=0"},
       })
    EXPECT_THAT(said(node, 1, each.command + "\n"), ElementsAre("1: " + each.answer))
        << each.command;
}

TEST(PmiNodeTest, WhatIsNoCommandIsThatWorkersFault) {
  struct Case {
    std::string lines;
    std::string fault;
  };
  for (const Case& each : std::vector<Case>{
           {"cmd=get_maxes\n", "(1): broke PMI-1 with 'cmd=get_maxes' before cmd=init"},
           {std::string(5'000, 'x'), "(1): broke PMI-1 with a line of more than 4096 bytes"},
           {std::string(kInit) + "cmd=\x1b[2J\n",
            "(1): broke PMI-1 with 'cmd=\\x1b[2J' as a command"},
           {std::string(kInit) + "\n", "(1): broke PMI-1 with '' as a command"},
           {std::string(kInit) + "cmd=barrier_in\ncmd=get_maxes\n",
            "(1): broke PMI-1 with 'cmd=get_maxes' in a barrier"},
           {std::string(kInit) + "cmd=finalize\n" + kInit,
            "(1): broke PMI-1 with 'cmd=init pmi_version=1 pmi_subversion=1' after cmd=finalize"},
           {"cmd=abort exitcode=7\n", "(7): aborted the job with code 7"},
           {std::string(kInit) + "cmd=abort exitcode=0\n", "(1): aborted the job with code 0"},
           {std::string(kInit) + "cmd=abort exitcode=257\n", "(1): aborted the job with code 257"},
           {std::string(kInit) + "cmd=abort exitcode=-1\n", "(255): aborted the job with code -1"},
           {std::string(kInit) + "cmd=abort\n", "(1): aborted the job with code "},
       }) {
    Node node(world(2));
    EXPECT_EQ(said(node, 1, each.lines + "cmd=get_maxes\n").back(), "fault 1 " + each.fault)
        << each.lines;
    EXPECT_THAT(said(node, 1, "cmd=get_maxes\n"), IsEmpty()) << "it is heard no more";
    EXPECT_THAT(said(node, 0, kInit), testing::SizeIs(1)) << "the others are";
  }
}

TEST(PmiNodeTest, ABarrierEndsWhenAllAreInIt) {
  Node node(world(3));
  begin(node, 3);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(said(node, 2, "cmd=barrier_in\n"), IsEmpty());
    EXPECT_THAT(said(node, 0, "cmd=barrier_in\n"), IsEmpty());
    EXPECT_THAT(said(node, 1, "cmd=barrier_in\n"),
                ElementsAre("0: cmd=barrier_out rc=0", "1: cmd=barrier_out rc=0",
                            "2: cmd=barrier_out rc=0"));
  }
}

TEST(PmiNodeTest, EachNodeSaysOnceWhatItsWorkersHavePut) {
  Node node(world(2, 2));
  EXPECT_THAT(wanted(node), ElementsAre("exchange 0: 2"));
  begin(node, 2);
  node.exchanged({"2", "2"});
  EXPECT_THAT(wanted(node), IsEmpty());
  (void)said(node, 0, "cmd=put kvsname=kvs key=a value=1\ncmd=barrier_in\n");
  EXPECT_THAT(said(node, 1, "cmd=put kvsname=kvs key=b value=2\ncmd=barrier_in\n"),
              ElementsAre("1: cmd=put_result rc=0 msg=success", "exchange 1: a 1\nb 2\n"));
  node.exchanged({"a 1\nb 2\n", "c 3\n"});
  EXPECT_THAT(wanted(node), ElementsAre("0: cmd=barrier_out rc=0", "1: cmd=barrier_out rc=0"));
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=c\n"),
              ElementsAre("0: cmd=get_result rc=0 msg=success value=3"));
  (void)said(node, 0, "cmd=barrier_in\n");
  EXPECT_THAT(said(node, 1, "cmd=barrier_in\n"), ElementsAre("exchange 2: "));
}

TEST(PmiNodeTest, BarriersWaitUntilTheNodesKnowOneAnother) {
  Node node(world(1, 2));
  EXPECT_THAT(wanted(node), ElementsAre("exchange 0: 1"));
  begin(node, 1);
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=PMI_process_mapping\n"), IsEmpty());
  node.exchanged({"1", "1"});
  EXPECT_THAT(wanted(node),
              ElementsAre("0: cmd=get_result rc=0 msg=success value=(vector,(0,2,1))"));
  Node early(world(1, 2));
  begin(early, 1);
  EXPECT_THAT(said(early, 0, "cmd=barrier_in\n"), IsEmpty());
  early.exchanged({"1", "1"});
  EXPECT_THAT(wanted(early), ElementsAre("exchange 1: "));
}

TEST(PmiNodeTest, TheLayoutSaysHowManyWorkersEachNodeHas) {
  const auto layout = [](const std::vector<std::string>& sizes, int all) {
    World of = world(2, static_cast<int>(sizes.size()));
    of.world_size = all;
    Node node(of);
    begin(node, 2);
    node.exchanged(sizes);
    return said(node, 0, "cmd=get kvsname=kvs key=PMI_process_mapping\n").at(0);
  };
  EXPECT_THAT(layout({"2", "2", "1", "4", "4"}, 13),
              HasSubstr("value=(vector,(0,2,2),(2,1,1),(3,2,4))"));
  // MPICH can do without, but not with a wrong one.
  for (const auto& sizes : {std::vector<std::string>{"2", "3"}, {"2", "x"}, {"2", ""}})
    EXPECT_THAT(layout(sizes, 4), HasSubstr("rc=-1"));
}

TEST(PmiNodeTest, WhatIsNoTextOfANodesIsIgnored) {
  Node node(world(1, 2));
  begin(node, 1);
  node.exchanged({"1", "1"});
  (void)said(node, 0, "cmd=barrier_in\n");
  node.exchanged({"", "\n \n x\n" + std::string(65, 'k') + " v\nlong " + std::string(1'025, 'v') +
                          "\ntwo words here\nk v"});
  EXPECT_THAT(wanted(node), ElementsAre("0: cmd=barrier_out rc=0"));
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=two\n").at(0), HasSubstr("rc=-1"));
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=long\n").at(0), HasSubstr("rc=-1"));
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=k\n").at(0), HasSubstr("value=v"));
  node.exchanged({"x 1\n"});
  EXPECT_THAT(said(node, 0, "cmd=get kvsname=kvs key=x\n").at(0), HasSubstr("rc=-1"))
      << "none was asked for";
}

TEST(PmiNodeTest, AWorkerMayPutSoMuchBetweenTwoBarriers) {
  Node node(world(1));
  begin(node, 1);
  const auto put = [&](int key) {
    return said(node, 0,
                "cmd=put kvsname=kvs key=" + std::to_string(1'000 + key) +
                    " value=" + std::string(1'020, 'v') + "\n")
        .at(0);
  };
  for (int key = 0; key < 64; ++key)
    EXPECT_THAT(put(key), HasSubstr("rc=0"));
  EXPECT_THAT(put(64), HasSubstr("rc=-1 msg=too_much_put"));
  (void)said(node, 0, "cmd=barrier_in\n");
  EXPECT_THAT(put(65), HasSubstr("rc=0"));
}

TEST(PmiNodeTest, WhoEndsInTheMiddleHasFailed) {
  Node node(world(4));
  EXPECT_FALSE(node.ended(0)) << "it is no MPI program";
  EXPECT_FALSE(node.begun(0));
  begin(node, 4);
  EXPECT_TRUE(node.begun(0));
  EXPECT_EQ(node.ended(1)->cause, "ended without MPI_Finalize");
  (void)said(node, 2, "cmd=barrier_in\n");
  EXPECT_TRUE(node.ended(2));
  (void)said(node, 3, "cmd=finalize\n");
  EXPECT_FALSE(node.ended(3));
}

TEST(PmiNodeTest, WhoNeverSpokeIsToldOfOnceUnlessItIsAlone) {
  Node node(world(3));
  node.receive(0, kInit);
  EXPECT_FALSE(node.warning_at_end(0));
  const auto warning = node.warning_at_end(1);
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("local rank 1 has ended without asking for the others"));
  EXPECT_FALSE(node.warning_at_end(2));
  Node alone(world(1));
  EXPECT_FALSE(alone.warning_at_end(0));
}

// Any cut of what is said gives the same answers, and no bytes do harm.
TEST(PmiNodeTest, BytesOfAnyKindAreAnsweredOrAFault) {
  const std::string words[] = {
      "cmd=",     "mcmd=",  "put",        "get",   "init",       "barrier_in",  "\n",
      " ",        "endcmd", "spawn",      "key=a", "value=b",    "kvsname=kvs", "pmi_version=1",
      "finalize", "abort",  "exitcode=9", "\xff",  "totspawns=2"};
  std::minstd_rand random(7);
  for (int run = 0; run < 2'000; ++run) {
    std::string text = run % 2 == 0 ? kInit : "";
    for (int word = 0; word < 40; ++word)
      text += words[random() % std::size(words)];
    Node whole(world(2, 2));
    Node cut(world(2, 2));
    std::vector<std::string> all = said(whole, 0, text);
    std::vector<std::string> parts = wanted(cut);
    for (std::string_view rest = text; !rest.empty();) {
      const auto size = std::min<std::size_t>(1 + random() % 9, rest.size());
      for (auto& each : said(cut, 0, std::string(rest.substr(0, size))))
        parts.push_back(std::move(each));
      rest.remove_prefix(size);
    }
    std::sort(all.begin(), all.end());
    std::sort(parts.begin(), parts.end());
    ASSERT_EQ(all, parts) << text;
  }
}

}  // namespace
}  // namespace drun::launcher::pmi
