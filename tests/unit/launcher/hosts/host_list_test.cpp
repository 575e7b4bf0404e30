// -H and hostfiles: every form that DeepSpeed, Open MPI and MPICH have, and all that is none.
#include "launcher/hosts/host_list.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

// "node1=4/8 node2", or "error: why".
std::string text_of(const Result<std::vector<Host>>& hosts) {
  if (!hosts) return "error: " + hosts.error().what();
  std::string text;
  for (const Host& host : *hosts) {
    text += (text.empty() ? "" : " ") + host.name;
    if (host.slots) text += "=" + std::to_string(*host.slots);
    if (host.max_slots) text += "/" + std::to_string(*host.max_slots);
  }
  return text;
}

TEST(HostListTest, OfTheCommandLine) {
  const struct {
    const char* list;
    const char* hosts;
  } cases[] = {
      {"node1", "node1"},
      {"node1:4,node2:4", "node1=4 node2=4"},
      {"node1:4, node2", "node1=4 node2"},
      {"gpu[0-2]:8,login", "gpu0=8 gpu1=8 gpu2=8 login"},
      {"gpu[08,10-11]", "gpu08 gpu10 gpu11"},
      {"me@node1:2", "me@node1=2"},
      {"me@gpu[0-1]:2", "me@gpu0=2 me@gpu1=2"},
      {"10.0.0.7:4", "10.0.0.7=4"},
      {"fd00::1", "fd00::1"},
      {"[fd00::1]:4,node2", "fd00::1=4 node2"},
      {"me@[fd00::1]:4", "me@fd00::1=4"},
      {"[fe80::1%eth0]:3,fe80::2%br-0.1", "fe80::1%eth0=3 fe80::2%br-0.1"},
      {"node1,node1", "node1=2"},
      {"node1:2,NODE1:3,me@Node1,Me@node1", "node1=5 me@Node1 Me@node1"},
      {"fd00::1:4",
       "error: 'fd00::1:4' may be an address or one with a number: write [fd00::1:4] or "
       "[fd00::1]:4"},
      {"[fd00::1:4],fd00:0:0:0:0:0:0:1,fd00::a:b", "fd00::1:4 fd00:0:0:0:0:0:0:1 fd00::a:b"},
      {"node1:4,node2:1,node1:2", "node1=6 node2=1"},
      {"node1:0", "error: 'node1:0': '0' is no number of slots"},
      {"node1:x", "error: 'node1:x': 'x' is no number of slots"},
      {"node1:", "error: 'node1:': '' is no number of slots"},
      {"", "error: it names no host"},
      {"a,,b", "error: it has an empty name"},
      {"a b:2", "a=2 b=2"},
      {"-oProxyCommand=x", "error: '-oProxyCommand=x' is no name of a host"},
      {"-v", "error: '-v' is no name of a host"},
      {"-v@node1", "error: '-v@node1' is no name of a host"},
      {"$(x)@node1", "error: '$(x)@node1' is no name of a host"},
      {"node1;x", "error: 'node1;x' is no name of a host"},
      {"gpu[0-", "error: 'gpu[0-' lacks a ']'"},
  };
  for (const auto& [list, hosts] : cases)
    EXPECT_EQ(text_of(parse_host_list(list)), hosts) << list;
}

TEST(HostListTest, OfAFile) {
  const struct {
    const char* file;
    const char* hosts;
  } cases[] = {
      {"worker-1 slots=4\nworker-2 slots=4\n", "worker-1=4 worker-2=4"},      // DeepSpeed
      {"n1 slots=2 max_slots=4\nn2 slots=2 max-slots=3\n", "n1=2/4 n2=2/3"},  // Open MPI
      {"n1\nn1\nn2\n", "n1=2 n2"},
      {"n1:4\nn2:2\n", "n1=4 n2=2"},  // MPICH
      {"n1 slots = 4\nn2 slots= 2 max_slots =8\n", "n1=4 n2=2/8"},
      {"n1 2 all.q@n1 UNDEFINED\nn2.x 4 all.q@n2 <NULL>\n", "n1=2 n2.x=4"},  // SGE
      {"n1 0 all.q@n1 UNDEFINED", "error: line 1: '0' is no number of slots"},
      {"n1 2 all.q@n1", "error: line 1: '2' is not slots=N, max_slots=N or user=NAME"},
      {"n1:2 slots=2", "n1=2"},
      {"n1:2 slots=3", "error: line 1: 'n1' has two numbers of slots"},
      {"N1 slots=2\nn1 slots=1\n", "N1=3"},
      {"n[1-2]:4 user=me\nfd00::1 user=you slots=2", "me@n1=4 me@n2=4 you@fd00::1=2"},
      {"n1 user=", "error: line 1: '' is no name of a user"},
      {"n1 user=-oX", "error: line 1: '-oX' is no name of a user"},
      {"n1 user=a@b", "error: line 1: 'a@b' is no name of a user"},
      {"you@n1 user=me", "error: line 1: 'you@n1' says already who logs in"},
      {"n1:2 binding=rr",
       "error: line 1: 'binding=rr': a host has no binding of its own; --numa-binding is for all"},
      {"n1:2 ifname=ib0",
       "error: line 1: 'ifname=ib0': a host has no interface of its own; --local-addr is for all"},
      {"# all\n\n  n1 slots=4 # the first\r\n\tn2\t slots=8", "n1=4 n2=8"},
      {"gpu[0-1] slots=8", "gpu0=8 gpu1=8"},
      {"n1 slots=0", "error: line 1: '0' is no number of slots"},
      {"n1\nn2 gpus=4", "error: line 2: 'gpus=4' is not slots=N, max_slots=N or user=NAME"},
      {"n1 n2", "error: line 1: 'n2' is not slots=N, max_slots=N or user=NAME"},
      {"slots=4", "error: line 1: 'slots=4' is no name of a host"},
      {"# nobody\n", "error: it names no host"},
      {"", "error: it names no host"},
  };
  for (const auto& [file, hosts] : cases)
    EXPECT_EQ(text_of(parse_hostfile(file)), hosts) << file;
}

TEST(HostListTest, WithoutSenseDoesNotFillTheMemory) {
  std::string list;
  std::string file;
  for (int line = 0; line < 100; ++line) {
    list += (list.empty() ? "" : ",") + std::string("n[1-100000]");
    file += "n[1-100000]\n";
  }
  const std::string error = "error: hosts are named more than 1000000 times";
  EXPECT_EQ(text_of(parse_host_list(list)), error);
  EXPECT_EQ(text_of(parse_hostfile(file)), error);
}

}  // namespace
}  // namespace drun::launcher::hosts
