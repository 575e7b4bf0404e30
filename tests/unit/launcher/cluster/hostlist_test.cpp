// Lists of hosts: every form that Slurm writes, and all that is none.
#include "launcher/cluster/hostlist.hpp"

#include <gtest/gtest.h>

namespace drun::launcher::cluster {
namespace {

// The names with blanks between, or "error: why".
std::string text_of(const Result<std::vector<std::string>>& hosts) {
  if (!hosts) return "error: " + hosts.error().what();
  std::string text;
  for (const std::string& host : *hosts)
    text += (text.empty() ? "" : " ") + host;
  return text;
}

std::string expanded(std::string_view list) {
  return text_of(expand_hostlist(list));
}

TEST(HostlistTest, IsExpandedAsSlurmDoes) {
  const struct {
    const char* list;
    const char* hosts;
  } cases[] = {
      {"node1", "node1"},
      {"gpu-a-07", "gpu-a-07"},
      {"linux[1,2]", "linux1 linux2"},
      {"n[1-3]", "n1 n2 n3"},
      {"n[3]", "n3"},
      {"n[1,3-4,7]", "n1 n3 n4 n7"},
      {"a,b,c", "a b c"},
      {"a b\tc\nd", "a b c d"},
      {"a, b", "a b"},
      {"b04-[09-10]", "b04-09 b04-10"},
      {"n[9-10]", "n9 n10"},
      {"n[00-2]", "n00 n01 n02"},
      {"n[001,003]", "n001 n003"},
      {"n[001-3]", "n001 n002 n003"},
      {"n[098-101]", "n098 n099 n100 n101"},
      {"n[08,9-10,011]", "n08 n9 n10 n011"},
      {"n0[1-2]", "n01 n02"},
      {"nodeA,nodeB[001,003]", "nodeA nodeB001 nodeB003"},
      {"foo003,foo0[10-12],foo[103-104],foo[10,12-14],foo-m11-16",
       "foo003 foo010 foo011 foo012 foo103 foo104 foo10 foo12 foo13 foo14 foo-m11-16"},
      {"foo[1,1,2,1]", "foo1 foo1 foo2 foo1"},
      {"foo[0-1]-eth2", "foo0-eth2 foo1-eth2"},
      {"rack[0-1]node[01-02]", "rack0node01 rack0node02 rack1node01 rack1node02"},
      {"rack[0-1]node[1-2]-ib", "rack0node1-ib rack0node2-ib rack1node1-ib rack1node2-ib"},
      {"r[1-2]c[3-4]n[5-6]", "r1c3n5 r1c3n6 r1c4n5 r1c4n6 r2c3n5 r2c3n6 r2c4n5 r2c4n6"},
      {"r[1-2][3-4]", "r13 r14 r23 r24"},
      {"[1-2]", "1 2"},
      {"n[1-2].cluster.example", "n1.cluster.example n2.cluster.example"},
      {",a,,b,", "a b"},
      {"n[0-0]", "n0"},
      {"n[999999999999999998-999999999999999999]", "n999999999999999998 n999999999999999999"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(expanded(each.list), each.hosts) << each.list;
}

TEST(HostlistTest, WhatIsNoListIsRefused) {
  const struct {
    const char* list;
    const char* why;
  } cases[] = {
      {"", "it names no host"},
      {" , ", "it names no host"},
      {"n[", "'n[' lacks a ']'"},
      {"n[1-2", "'n[1-2' lacks a ']'"},
      {"n[1-2,m", "'n[1-2,m' lacks a ']'"},
      {"n]", "'n]' is no name of a host"},
      {"n1]", "'n1]' is no name of a host"},
      {"n[]", "'[]' holds no number"},
      {"n[,1]", "'' is no range of numbers"},
      {"n[1,,2]", "'' is no range of numbers"},
      {"n[1,]", "'1,' ends in a comma"},
      {"n[-1]", "'-1' is no range of numbers"},
      {"n[1-]", "'1-' is no range of numbers"},
      {"n[1-2-3]", "'1-2-3' is no range of numbers"},
      {"n[a]", "'a' is no range of numbers"},
      {"n[a-c]", "'a-c' is no range of numbers"},
      {"n[1 2]", "'1 2' is no range of numbers"},
      {"n[+1]", "'+1' is no range of numbers"},
      {"n[2-1]", "'2-1' runs backwards"},
      {"n[1[2]]", "'1[2' is no range of numbers"},
      {"n[000x113]", "'000x113' is no range of numbers"},
      {"{func}", "'{func}' is no name of a host"},
      {"(null)", "'(null)' is no name of a host"},
      {"a;b", "'a;b' is no name of a host"},
      {"$(hostname)", "'$(hostname)' is no name of a host"},
      {"n\x1b[1-2]", "'n\\x1b[1-2]' is no name of a host"},
      {"n[0-999999999999999999]", "'0-999999999999999999' is too long"},
      {"n[1-9999999999999999999]", "'1-9999999999999999999' has too many digits"},
      {"n[1-60000,1-60000]", "more than 100000 hosts"},
      {"n[1-400]m[1-400]", "more than 100000 hosts"},
      {"a[1-60000],b[1-60000]", "more than 100000 hosts"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(expanded(each.list), std::string("error: ") + each.why) << each.list;
}

// Every text of these letters is a list or is refused, and a list names hosts.
TEST(HostlistTest, AnyTextIsAListOrRefused) {
  constexpr std::string_view kLetters = "a1[]-, ";
  constexpr std::size_t kLength = 5;
  std::size_t total = 1;
  for (std::size_t i = 0; i < kLength; ++i)
    total *= kLetters.size();
  for (std::size_t number = 0; number < total; ++number) {
    std::string text;
    for (std::size_t rest = number, i = 0; i < kLength; ++i, rest /= kLetters.size())
      text += kLetters[rest % kLetters.size()];
    const auto hosts = expand_hostlist(text);
    if (!hosts) {
      ASSERT_FALSE(hosts.error().what().empty()) << text;
      continue;
    }
    ASSERT_FALSE(hosts->empty()) << text;
    for (const std::string& host : *hosts)
      ASSERT_TRUE(!host.empty() && host.find_first_of("[], ") == std::string::npos) << text;
  }
}

TEST(HostlistTest, FilesOfHostsHaveOneALine) {
  EXPECT_EQ(text_of(first_words("n1\nn1\nn2\n")), "n1 n1 n2");
  EXPECT_EQ(text_of(first_words("n1 8 all.q UNDEFINED\r\n\n  n2\t8 all.q <NULL>")), "n1 n2");
  EXPECT_EQ(text_of(first_words("\n \n")), "error: it names no host");
  EXPECT_EQ(text_of(first_words("n1\n<html>\n")), "error: '<html>' is no name of a host");
  EXPECT_EQ(text_of(hosts_with_slots("n1 16 n2 8")), "n1 n2");
  EXPECT_EQ(text_of(hosts_with_slots("n1 16 n2")), "error: after 'n2' comes no number of slots");
  EXPECT_EQ(text_of(hosts_with_slots("n1 n2")), "error: after 'n1' comes no number of slots");
  EXPECT_EQ(text_of(hosts_with_slots("")), "error: it names no host");
  EXPECT_EQ(text_of(comma_list("a-0.a, a-1.a")), "a-0.a a-1.a");
  EXPECT_EQ(text_of(comma_list("a,,b")), "error: it has an empty name");
  EXPECT_EQ(each_once({"b", "a", "b", "c", "a"}), (std::vector<std::string>{"b", "a", "c"}));
}

TEST(HostlistTest, OneMachineHasALongAndAShortName) {
  EXPECT_TRUE(same_host("node7", "node7.cluster.example"));
  EXPECT_TRUE(same_host("Node7", "node7"));
  EXPECT_TRUE(same_host("node7.a", "NODE7.A"));
  EXPECT_FALSE(same_host("node7.a", "node7.b"));
  EXPECT_FALSE(same_host("node7", "node70"));
  EXPECT_TRUE(same_host("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(same_host("10.0.0.7", "10.0.0.8"));
}

}  // namespace
}  // namespace drun::launcher::cluster
