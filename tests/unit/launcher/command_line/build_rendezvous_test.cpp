// Which backend, endpoint, run id and rank a command line means.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse_line;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// "backend endpoint id rank port min:max"
std::string meaning(const std::string& line, const std::vector<std::string>& environment = {}) {
  const Parsed parsed = parse_line(line + " ./program", environment);
  if (!parsed.options) return parsed.text;
  const Options& options = *parsed.options;
  std::string text = options.backend == Backend::Standalone ? "standalone"
                     : options.backend == Backend::C10d     ? "c10d"
                                                            : "static";
  if (options.backend != Backend::Standalone) text += " " + to_string(options.endpoint);
  text += " id=" + options.run_id;
  text += " rank=" + (options.node_rank ? std::to_string(*options.node_rank) : "any");
  if (options.node_rank && options.node_rank_is_wish) text += " if free";
  text += " port=" + (options.master_port ? std::to_string(*options.master_port) : "free");
  return text + " nodes=" + std::to_string(options.min_nodes) + ":" +
         std::to_string(options.max_nodes);
}

struct Case {
  const char* line;
  const char* meaning;
};

TEST(RendezvousOptionsTest, CommandLinesMeanWhatTheyMeanToTorchrun) {
  const Case cases[] = {
      {"", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone --nnodes 1", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone --nnodes 1:4", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone --node-rank 3", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone --rdzv-id job", "standalone id=job rank=any port=free nodes=1:1"},
      {"--standalone --rdzv-endpoint h:1", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--standalone --master-port 29511", "standalone id=fresh-id rank=any port=29511 nodes=1:1"},
      {"--rdzv-backend static", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--rdzv-backend c10d", "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--rdzv-backend=c10d --rdzv-endpoint=localhost:0",
       "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--node-rank 0", "standalone id=fresh-id rank=0 port=free nodes=1:1"},
      {"--nnodes 1 --node-rank 0 --master-addr localhost",
       "standalone id=fresh-id rank=0 port=free nodes=1:1"},

      {"--rdzv-endpoint h", "c10d h:29400 id=none rank=any port=free nodes=1:1"},
      {"--nnodes 2 --rdzv-endpoint h", "c10d h:29400 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 1:4 --rdzv-endpoint h:29500 --rdzv-id 7",
       "c10d h:29500 id=7 rank=any port=free nodes=1:4"},
      {"--nnodes 2 --rdzv-endpoint [fe80::1%eth0]:29500",
       "c10d [fe80::1%eth0]:29500 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-endpoint ::1", "c10d [::1]:29400 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-backend c10d --rdzv-endpoint h:29500 --node-rank 1",
       "c10d h:29500 id=none rank=1 if free port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-backend c10d --rdzv-endpoint h:29500 --node-rank 7",
       "c10d h:29500 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-backend c10d --rdzv-endpoint h --rdzv-conf rank=1",
       "c10d h:29400 id=none rank=1 if free port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-endpoint h:29500 --node-rank 1",
       "c10d h:29500 id=none rank=1 port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-endpoint h:29500 --master-addr h --master-port 29500",
       "c10d h:29500 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-endpoint h:29500 --master-port 29501",
       "c10d h:29500 id=none rank=any port=29501 nodes=2:2"},
      {"--nnodes 2 --rdzv-endpoint h --rdzv-conf rank=1",
       "c10d h:29400 id=none rank=1 port=free nodes=2:2"},

      {"--nnodes 2 --node-rank 0 --master-addr X --master-port 1234",
       "static X:1234 id=none rank=0 port=1234 nodes=2:2"},
      {"--nnodes 2 --node-rank 1", "static 127.0.0.1:29500 id=none rank=1 port=free nodes=2:2"},
      {"--nnodes 2 --node-rank 1 --master-addr X",
       "static X:29500 id=none rank=1 port=free nodes=2:2"},
      {"--nnodes 2 --node-rank 1 --master-port 1234",
       "static 127.0.0.1:1234 id=none rank=1 port=1234 nodes=2:2"},
      {"--rdzv-backend static --nnodes 1 --master-addr localhost",
       "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--nnodes 1 --master-port 1234",
       "static 127.0.0.1:1234 id=none rank=any port=1234 nodes=1:1"},
      {"--nnodes 1 --master-addr localhost --master-port 1234",
       "static localhost:1234 id=none rank=any port=1234 nodes=1:1"},
      {"--nnodes 1 --master-addr localhost --master-port 0",
       "standalone id=fresh-id rank=any port=free nodes=1:1"},
      {"--nnodes 2 --rdzv-backend static --rdzv-endpoint h --node-rank 1",
       "static h:29500 id=none rank=1 port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-backend static --rdzv-endpoint h --master-port 77",
       "static h:77 id=none rank=any port=77 nodes=2:2"},
      {"--nnodes 2 --master-addr ::1 --master-port 9 --rdzv-id job",
       "static [::1]:9 id=job rank=any port=9 nodes=2:2"},

      {"--local-nodes 3", "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=3:3"},
      {"--local-nodes 2 --standalone", "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=2:2"},
      {"--local-nodes 2 --nnodes 2", "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=2:2"},
      {"--local-nodes 2 --nnodes 1:4", "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=1:4"},
      {"--local-nodes 2 --rdzv-endpoint h:1",
       "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=2:2"},
      {"--local-nodes 2 --master-port 29511",
       "c10d 127.0.0.1:0 id=fresh-id rank=any port=29511 nodes=2:2"},
      {"--local-nodes 2 --rdzv-endpoint localhost:0",
       "c10d 127.0.0.1:0 id=fresh-id rank=any port=free nodes=2:2"},
      {"--local-nodes 2 --master-addr localhost --master-port 29511",
       "c10d 127.0.0.1:0 id=fresh-id rank=any port=29511 nodes=2:2"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(meaning(each.line), each.meaning) << each.line;
}

// Nobody can bind the port that the nodes meet at: drun has it.
TEST(RendezvousOptionsTest, RankZeroGetsAPortThatItCanBind) {
  const Case cases[] = {
      {"--master-port 1234", "standalone id=none rank=any port=1234 nodes=1:1"},
      {"--rdzv-backend static --rdzv-endpoint h:1234 --node-rank 0 --rdzv-id 7",
       "standalone id=7 rank=0 port=1234 nodes=1:1"},
      {"--rdzv-backend static --rdzv-endpoint h:1234 --master-port 77",
       "standalone id=none rank=any port=1234 nodes=1:1"},
      {"--nnodes 2 --master-addr h --master-port 1234",
       "static h:1234 id=none rank=any port=free nodes=2:2"},
      {"--nnodes 2 --rdzv-backend static --rdzv-endpoint h:1234 --master-port 77",
       "static h:1234 id=none rank=any port=77 nodes=2:2"},
      {"--nnodes 1:2 --master-addr h", "static h:29500 id=none rank=any port=free nodes=1:2"},
      {"--rdzv-endpoint h:1234 --master-port 77", "c10d h:1234 id=none rank=any port=77 nodes=1:1"},
      {"--local-nodes 2 --master-port 77",
       "c10d 127.0.0.1:0 id=fresh-id rank=any port=77 nodes=2:2"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(meaning("--worker-store rank0 " + std::string(each.line)), each.meaning) << each.line;
  const auto address = [](const std::string& flags) {
    return options_of("--worker-store rank0 --master-addr h --master-port 1 " + flags + "p")
        .local_addr.value_or("none");
  };
  EXPECT_EQ(address(""), "h");
  EXPECT_EQ(address("--local-addr here "), "here");
  EXPECT_EQ(address("--nnodes 2 "), "none");
}

TEST(RendezvousOptionsTest, KubernetesVariablesDescribeTheJob) {
  EXPECT_EQ(meaning("", {"PET_NNODES=2", "PET_NODE_RANK=1", "PET_MASTER_ADDR=job-0",
                         "PET_MASTER_PORT=29400", "PET_NPROC_PER_NODE=2"}),
            "static job-0:29400 id=none rank=1 port=29400 nodes=2:2");
  EXPECT_EQ(
      meaning("", {"PET_RDZV_ENDPOINT=", "PET_RDZV_BACKEND=", "PET_RDZV_ID=", "PET_NODE_RANK=",
                   "PET_MASTER_ADDR=", "PET_MASTER_PORT=", "PET_RDZV_CONF="}),
      "standalone id=fresh-id rank=any port=free nodes=1:1");
}

TEST(RendezvousOptionsTest, StaticsNameOfTheTimeToJoinIsOfNoEffectElsewhereAndToldSo) {
  const std::string c10d = "--nnodes 2 --rdzv-endpoint h:1 ";
  EXPECT_THAT(options_of(c10d + "--rdzv-conf timeout=2 p").notes,
              ElementsAre("--rdzv-conf: timeout is of effect with --rdzv-backend static only, as "
                          "in torchrun; the time to wait for the nodes is join_timeout"));
  for (const std::string& meant :
       {c10d + "--rdzv-conf timeout=2,join_timeout=3 p", std::string("--rdzv-conf timeout=2 p"),
        std::string("--nnodes 2 --node-rank 1 --master-addr h --rdzv-conf timeout=2 p")})
    EXPECT_THAT(options_of(meant).notes, IsEmpty()) << meant;
}

TEST(RendezvousOptionsTest, TheFlagThatSaysWhereTheNodesMeetIsKnown) {
  const std::string nodes = "--nnodes 2 --node-rank 1 ";
  EXPECT_EQ(options_of(nodes + "--master-addr h p").endpoint_flag, "--master-addr");
  EXPECT_EQ(options_of(nodes + "--rdzv-endpoint h:1 p").endpoint_flag, "--rdzv-endpoint");
  EXPECT_EQ(options_of(nodes + "--rdzv-backend static --rdzv-endpoint h:1 p").endpoint_flag,
            "--rdzv-endpoint");
}

TEST(RendezvousOptionsTest, SeveralNodesThatMeetAtLoopbackAreToldSo) {
  const std::string line = "--nnodes 2 --node-rank 1 ";
  EXPECT_THAT(options_of(line + "p").notes,
              ElementsAre("no --master-addr: the nodes meet at 127.0.0.1:29500, which only this "
                          "machine can reach"));
  EXPECT_THAT(options_of(line + "--master-addr h p").notes, IsEmpty());
  EXPECT_THAT(options_of("--node-rank 0 --master-port 9 p").notes, IsEmpty());
}

TEST(RendezvousOptionsTest, ImpossibleCombinationsSayWhatToDo) {
  const Case cases[] = {
      {"--nnodes 2",
       "drun: error: several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on every "
       "node, or --node-rank, --master-addr and --master-port, or try them on this machine with "
       "--local-nodes 2\n"},
      {"--nnodes 1:2",
       "drun: error: several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on every "
       "node, or --node-rank, --master-addr and --master-port, or try them on this machine with "
       "--local-nodes 2\n"},
      {"--nnodes 2 --rdzv-backend c10d",
       "drun: error: several nodes need a place to meet: give --rdzv-endpoint HOST:PORT on every "
       "node, or --node-rank, --master-addr and --master-port, or try them on this machine with "
       "--local-nodes 2\n"},
      {"--nnodes 2 --rdzv-endpoint 0.0.0.0:1",
       "drun: error: 0.0.0.0 is no machine's address: the nodes meet at an address that one of "
       "them has\n"},
      {"--nnodes 1:2 --master-addr ::",
       "drun: error: :: is no machine's address: the nodes meet at an address that one of them "
       "has\n"},
      {"--standalone --nnodes 2",
       "drun: error: --nnodes '2': --standalone is one node; drop it, or use --local-nodes to run "
       "several on this machine\n"},
      {"--nnodes 2 --rdzv-endpoint h:0",
       "drun: error: port 0 means any free port, which the other nodes cannot know; give a "
       "number\n"},
      {"--nnodes 2 --master-addr h --master-port 0",
       "drun: error: port 0 means any free port, which the other nodes cannot know; give a "
       "number\n"},
      {"--nnodes 2 --rdzv-endpoint h --node-rank 2",
       "drun: error: --node-rank '2': with 2 nodes the ranks are 0 to 1\n"},
      {"--node-rank 1", "drun: error: --node-rank '1': with 1 node the only rank is 0\n"},
      {"--node-rank -1",
       "drun: error: --node-rank '-1': expected a whole number from 0 to 1000000\n"},
      {"--nnodes 2 --rdzv-endpoint h --node-rank 0 --rdzv-conf rank=1",
       "drun: error: --node-rank '0': --rdzv-conf says rank=1\n"},
      {"--nnodes 2 --rdzv-endpoint h --rdzv-conf rank=5",
       "drun: error: --rdzv-conf rank '5': with 2 nodes the ranks are 0 to 1\n"},
      {"--local-nodes 2 --node-rank 1",
       "drun: error: --node-rank: names one node, and --local-nodes starts 2\n"},
      {"--local-nodes 2 --nnodes 3",
       "drun: error: --nnodes '3': --local-nodes 2 starts fewer, and no other machine can "
       "join them\n"},
      {"--local-nodes 2 --nnodes 3:4 --rdzv-endpoint h:1",
       "drun: error: --nnodes '3:4': --local-nodes 2 starts fewer, and no other machine can join "
       "them\n"},
      {"--local-nodes 2 --rdzv-endpoint h:70000",
       "drun: error: --rdzv-endpoint 'h:70000': a port is a number from 0 to 65535\n"},
      {"--rdzv-endpoint h:70000",
       "drun: error: --rdzv-endpoint 'h:70000': a port is a number from 0 to 65535\n"},
      {"--rdzv-endpoint h:",
       "drun: error: --rdzv-endpoint 'h:': a port is a number from 0 to 65535\n"},
      {"--rdzv-endpoint [::1:5",
       "drun: error: --rdzv-endpoint '[::1:5': the bracket is not closed\n"},
      {"--rdzv-endpoint a/b",
       "drun: error: --rdzv-endpoint 'a/b': expected host, host:port or [IPv6]:port\n"},
      {"--nnodes 2 --master-addr h:29500",
       "drun: error: --master-addr 'h:29500': expected an address only; the port is "
       "--master-port\n"},
      {"--master-port 70000",
       "drun: error: --master-port '70000': expected a whole number from 0 to 65535\n"},
      {"--master-port x",
       "drun: error: --master-port 'x': expected a whole number from 0 to 65535\n"},
      {"--rdzv-backend redis",
       "drun: error: --rdzv-backend 'redis': expected c10d, static or etcd; drun loads no Python "
       "plug-ins: "
       "use c10d, with one of the nodes as --rdzv-endpoint\n"},
      {"--rdzv-backend etcd-v2",
       "drun: error: --rdzv-backend etcd: name the cluster's members: --rdzv-endpoint "
       "HOST[:PORT],...\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1,e2:0",
       "drun: error: --rdzv-endpoint 'e1,e2:0': port 0 is no port of etcd, whose members listen at "
       "2379 as a rule\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1 --rdzv-conf protocol=ftp",
       "drun: error: --rdzv-conf 'protocol=ftp': expected http or https\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1 --rdzv-conf cacert=/ca.pem",
       "drun: error: --rdzv-conf: cacert, cert and key need protocol=https\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1 --rdzv-conf protocol=https,key=/k.pem",
       "drun: error: --rdzv-conf: key needs cert, the certificate that it belongs to\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1 --rdzv-conf username=ada",
       "drun: error: --rdzv-conf: username and password need one another\n"},
      {"--rdzv-backend etcd --rdzv-endpoint e1",
       "drun: error: --rdzv-backend etcd: other jobs meet at the cluster, too: give this one a "
       "name of its own with --rdzv-id\n"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(meaning(each.line), each.meaning) << each.line;
}

TEST(RendezvousOptionsTest, EtcdHasMembersCertificatesAndAUser) {
  for (const char* name : {"etcd", "etcd-v2", "etcd-v3"}) {
    const Options options = options_of(
        std::string("--nnodes 2 --node-rank 1 --rdzv-id j --rdzv-endpoint e1,e2:4001,[::1] "
                    "--rdzv-backend ") +
        name + " --rdzv-conf protocol=https,cacert=/ca,cert=/c,key=/k,username=ada,password=a=b p");
    EXPECT_EQ(options.backend, Backend::Etcd);
    EXPECT_EQ(meeting_place(options), "etcd at e1:2379,e2:4001,[::1]:2379");
    EXPECT_EQ(options.endpoint, (Endpoint{"e1", 2379}));
    EXPECT_EQ(options.etcd.tls, (etcd::Tls{true, "/ca", "/c", "/k"}));
    EXPECT_EQ(options.etcd.user, "ada");
    EXPECT_EQ(options.etcd.password, "a=b");
    EXPECT_TRUE(options.node_rank_is_wish);
    EXPECT_THAT(options.notes, IsEmpty());
  }
}

TEST(RendezvousOptionsTest, SeveralEndpointsAreAList) {
  const Options options =
      options_of("--nnodes 2:4 --rdzv-endpoint h1:29500,h2,[::1],h1:29501 --rdzv-id j p");
  EXPECT_EQ(options.backend, Backend::C10d);
  EXPECT_EQ(options.endpoints,
            (std::vector<Endpoint>{{"h1", 29500}, {"h2", 29400}, {"::1", 29400}, {"h1", 29501}}));
  EXPECT_EQ(options.endpoint, (Endpoint{"h1", 29500}));
  EXPECT_EQ(meeting_place(options), "h1:29500,h2:29400,[::1]:29400,h1:29501");
  EXPECT_TRUE(options_of("--nnodes 2 --rdzv-endpoint h1 p").endpoints.empty());
  const Case cases[] = {
      {"--nnodes 4 --rdzv-endpoint a,,b",
       "drun: error: --rdzv-endpoint 'a,,b': there is a comma too many\n"},
      {"--nnodes 4 --rdzv-endpoint a,b,",
       "drun: error: --rdzv-endpoint 'a,b,': there is a comma too many\n"},
      {"--nnodes 4 --rdzv-endpoint Head,head",
       "drun: error: --rdzv-endpoint 'Head,head': head:29400 is there twice\n"},
      {"--nnodes 4 --rdzv-endpoint ::1,0:0:0:0:0:0:0:1",
       "drun: error: --rdzv-endpoint '::1,0:0:0:0:0:0:0:1': [0:0:0:0:0:0:0:1]:29400 is there "
       "twice\n"},
      {"--nnodes 4 --rdzv-endpoint 127.0.0.1,localhost",
       "drun: error: --rdzv-endpoint '127.0.0.1,localhost': localhost:29400 is there twice\n"},
      {"--nnodes 4 --rdzv-endpoint a,b,a:29400",
       "drun: error: --rdzv-endpoint 'a,b,a:29400': a:29400 is there twice\n"},
      {"--nnodes 4 --rdzv-endpoint a,b:0",
       "drun: error: --rdzv-endpoint 'a,b:0': port 0 means any free port, which the other nodes "
       "cannot know\n"},
      {"--nnodes 4 --rdzv-endpoint a,0.0.0.0",
       "drun: error: --rdzv-endpoint 'a,0.0.0.0': 0.0.0.0 is no machine's address\n"},
      {"--nnodes 9 --rdzv-endpoint a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
       "drun: error: --rdzv-endpoint 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q': at most 16 endpoints\n"},
      {"--nnodes 1 --rdzv-endpoint a,b",
       "drun: error: --rdzv-endpoint 'a,b': a job begins when the agents of 2 of these 2 endpoints "
       "have met, and --nnodes is 1\n"},
      {"--nnodes 2 --rdzv-endpoint a,b --rdzv-conf is_host=1",
       "drun: error: --rdzv-endpoint 'a,b': --rdzv-conf is_host=true does not say which of several "
       "endpoints is this node's; give addresses that the nodes have\n"},
      {"--nnodes 2 --rdzv-endpoint a,b --rdzv-conf successors=0",
       "drun: error: --rdzv-endpoint 'a,b': with --rdzv-conf successors=0 the job would end with "
       "its first store, so several endpoints are of no use\n"},
      {"--nnodes 2 --rdzv-backend static --rdzv-endpoint a,b --node-rank 1",
       "drun: error: --rdzv-endpoint 'a,b': a static job meets at node rank 0, so it has one "
       "endpoint; several need --rdzv-backend c10d\n"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(meaning(each.line), each.meaning) << each.line;
}

TEST(RendezvousOptionsTest, TheNamesOfTorchsSecondEtcdBackendMeanTheSame) {
  const Options options = options_of(
      "--rdzv-backend etcd-v2 --rdzv-endpoint e1 --rdzv-id j --rdzv-conf "
      "protocol=https,ca_cert=/ca,ssl_cert=/c,ssl_cert_key=/k p");
  EXPECT_EQ(options.etcd.tls, (etcd::Tls{true, "/ca", "/c", "/k"}));
}

TEST(RendezvousOptionsTest, WhatIsForEtcdAloneIsSaidElsewhere) {
  EXPECT_THAT(options_of("--rdzv-endpoint a:1 --rdzv-conf username=ada,password=b p").notes,
              ElementsAre("--rdzv-conf: protocol, certificates, username and password are for "
                          "etcd, and have no effect here"));
  EXPECT_THAT(
      options_of("--rdzv-backend etcd --rdzv-endpoint e1 --rdzv-id j --rdzv-conf is_host=true p")
          .notes,
      ElementsAre("--rdzv-conf: is_host has no effect with etcd, which no node runs"));
}

TEST(RendezvousOptionsTest, APasswordIsNotExplained) {
  EXPECT_THAT(parse_line("--explain --rdzv-backend etcd --rdzv-endpoint e1 --rdzv-id j --rdzv-conf "
                         "username=ada,password=opensesame p")
                  .text,
              AllOf(HasSubstr("username=ada,password=..."), Not(HasSubstr("opensesame"))));
  // Nor is one in a variable that a flag overrides.
  EXPECT_THAT(parse_line("--explain --rdzv-conf join_timeout=5 p",
                         {"PET_RDZV_CONF=password=opensesame,username=ada"})
                  .text,
              AllOf(HasSubstr("over PET_RDZV_CONF=password=...,username=ada"),
                    Not(HasSubstr("opensesame"))));
}

// Neither what it is nor what may be its end, behind a comma.
TEST(RendezvousOptionsTest, APasswordIsInNoError) {
  const char* const comma =
      ": what follows password= begins with no key; no comma can be in a password";
  const Case cases[] = {
      {"username=ada,password=opensesame,", comma},
      {"username=ada,password=x,opensesame", comma},
      {"username=ada,password=x,opensesame=1", comma},
      {"password=x, opensesame,join_timeout=5", comma},
      {",password=opensesame", " ',password=...': expected KEY=VALUE pairs"},
      {"=1, password = opensesame,opensesame,rank=1",
       " '=1, password =...,rank=1': expected KEY=VALUE pairs"},
  };
  for (const Case& each : cases) {
    EXPECT_THAT(parse_line("p", {std::string("PET_RDZV_CONF=") + each.line}).text,
                AllOf(HasSubstr(each.meaning), Not(HasSubstr("opensesame"))))
        << each.line;
  }
}

TEST(RendezvousOptionsTest, AnIdIsNoLongerThanAKeyMayBe) {
  const std::string id(1'000, 'x');
  EXPECT_EQ(options_of("--rdzv-id " + id + " p").run_id, id);
  EXPECT_THAT(parse_line("--rdzv-id " + id + "x p").text,
              AllOf(HasSubstr("drun: error: --rdzv-id 'xxx"), HasSubstr("at most 1000 bytes\n")));
  EXPECT_EQ(options_of("--rdzv-endpoint 0.0.0.0:1 p").endpoint.host, "0.0.0.0");
}

TEST(RendezvousOptionsTest, StandaloneSaysWhatItIgnores) {
  EXPECT_THAT(options_of("--standalone --rdzv-endpoint h:1 --rdzv-backend c10d p").notes,
              ElementsAre("--rdzv-endpoint has no effect with --standalone",
                          "--rdzv-backend has no effect with --standalone"));
  EXPECT_THAT(options_of("--standalone --node-rank 3 p").notes,
              ElementsAre("--node-rank has no effect with --standalone"));
  EXPECT_TRUE(options_of("--standalone --node-rank 0 p").notes.empty());
  EXPECT_TRUE(
      options_of("--standalone p", {"PET_RDZV_ENDPOINT=h:1", "PET_NODE_RANK=3"}).notes.empty());
}

TEST(RendezvousOptionsTest, LocalNodesSayWhatTheyIgnore) {
  EXPECT_THAT(options_of("--local-nodes 2 --rdzv-backend static --master-addr h --rdzv-endpoint "
                         "h:1 --master-port 2 p")
                  .notes,
              ElementsAre("--rdzv-endpoint has no effect with --local-nodes",
                          "--rdzv-backend has no effect with --local-nodes",
                          "--master-addr has no effect with --local-nodes"));
  EXPECT_TRUE(options_of("--local-nodes 2 --rdzv-backend c10d --rdzv-endpoint localhost:0 p",
                         {"PET_MASTER_ADDR=h"})
                  .notes.empty());
}

TEST(RendezvousOptionsTest, TheLocalAddressMayBeAnInterface) {
  EXPECT_EQ(options_of("--local-addr eth1 p").local_addr, "10.1.2.3");
  EXPECT_EQ(options_of("--local-addr 10.9.8.7 p").local_addr, "10.9.8.7");
  EXPECT_EQ(options_of("--local-addr fe80::1 p").local_addr, "fe80::1");
  EXPECT_EQ(options_of("--local-addr node7 p").local_addr, "node7");
  EXPECT_FALSE(options_of("--local-addr= p").local_addr);
  EXPECT_THAT(parse_line("--local-addr h:1 p").text,
              HasSubstr("--local-addr 'h:1': expected an address, a host name or the name of an "
                        "interface"));
}

// ---- --rdzv-conf ----

RendezvousConf conf_of(const std::string& conf, const std::string& flags = "") {
  return options_of("--rdzv-conf " + conf + " " + flags + " p").conf;
}

TEST(RendezvousConfTest, DefaultsAreTorchrunsWhereTheyExist) {
  const RendezvousConf conf = options_of("p").conf;
  EXPECT_EQ(conf, RendezvousConf());
  EXPECT_EQ(conf.join_timeout.count(), 600'000);
  EXPECT_EQ(conf.last_call_timeout.count(), 30'000);
  EXPECT_EQ(conf.close_timeout.count(), 30'000);
  EXPECT_EQ(conf.read_timeout.count(), 60'000);
  EXPECT_EQ(conf.keep_alive_max_attempt, 3);
  EXPECT_FALSE(conf.is_host);
}

TEST(RendezvousConfTest, EveryKeyIsRead) {
  const RendezvousConf conf = conf_of(
      "join_timeout=1,last_call_timeout=2,close_timeout=3.5,keep_alive_interval=.25,"
      "keep_alive_max_attempt=5,heartbeat_timeout=6,read_timeout=7,is_host=true,store_type=tcp,"
      "timeout=8,rank=0,successors=9,quorum=10");
  EXPECT_EQ(conf.join_timeout.count(), 1'000);
  EXPECT_EQ(conf.last_call_timeout.count(), 2'000);
  EXPECT_EQ(conf.close_timeout.count(), 3'500);
  EXPECT_EQ(conf.keep_alive_interval.count(), 250);
  EXPECT_EQ(conf.keep_alive_max_attempt, 5);
  EXPECT_EQ(conf.heartbeat_timeout.count(), 6'000);
  EXPECT_EQ(conf.read_timeout.count(), 7'000);
  EXPECT_EQ(conf.is_host, true);
  EXPECT_EQ(conf.successors, 9);
  EXPECT_EQ(conf.quorum, 10);
}

TEST(RendezvousConfTest, TimesAreWrittenAsInFlags) {
  const RendezvousConf conf = conf_of("join_timeout=5m,close_timeout=1h30m,read_timeout=250ms");
  EXPECT_EQ(conf.join_timeout.count(), 300'000);
  EXPECT_EQ(conf.close_timeout.count(), 5'400'000);
  EXPECT_EQ(conf.read_timeout.count(), 250);
}

TEST(RendezvousConfTest, BooleansAreTorchruns) {
  for (const char* yes : {"1", "true", "t", "yes", "y", "True", "YES"}) {
    EXPECT_EQ(conf_of("is_host=" + std::string(yes)).is_host, true) << yes;
  }
  for (const char* no : {"0", "false", "f", "no", "n", "False", "NO"}) {
    EXPECT_EQ(conf_of("is_host=" + std::string(no)).is_host, false) << no;
  }
}

TEST(RendezvousConfTest, TheStaticBackendWaitsForItsOwnTimeout) {
  const std::string flags = "--nnodes 2 --master-addr h";
  EXPECT_EQ(options_of(flags + " p").conf.join_timeout.count(), 900'000);
  EXPECT_EQ(conf_of("timeout=5", flags).join_timeout.count(), 5'000);
  EXPECT_EQ(conf_of("timeout=5,join_timeout=6", flags).join_timeout.count(), 6'000);
  EXPECT_EQ(conf_of("timeout=5").join_timeout.count(), 600'000);  // no effect for c10d
}

TEST(RendezvousConfTest, BlanksAroundKeysAndValuesDoNotMatter) {
  const Parsed parsed = test::parse({"--rdzv-conf", " join_timeout = 5 , is_host = 1 ", "p"});
  ASSERT_TRUE(parsed.options) << parsed.text;
  EXPECT_EQ(parsed.options->conf.join_timeout.count(), 5'000);
}

TEST(RendezvousConfTest, MistakesAreRefusedByName) {
  const Case cases[] = {
      {"a", "--rdzv-conf: the key 'a' needs a value"},
      {"join_timeout=", "--rdzv-conf: the key 'join_timeout' needs a value"},
      {"=b", "--rdzv-conf '=b': expected KEY=VALUE pairs with commas between"},
      {"is_host=1,", "--rdzv-conf 'is_host=1,': expected KEY=VALUE pairs with commas between"},
      {"join_timout=5",
       "--rdzv-conf: unknown key 'join_timout'; known are join_timeout, timeout, "
       "last_call_timeout, close_timeout, keep_alive_interval, keep_alive_max_attempt, "
       "heartbeat_timeout, read_timeout, is_host, successors, quorum, store_type, rank, protocol, "
       "cacert, cert, key, username, password"},
      {"join_timeout=x",
       "--rdzv-conf join_timeout 'x': expected a time such as 90 (seconds), 5m or 1h30m"},
      {"join_timeout=1e3",
       "--rdzv-conf join_timeout '1e3': expected a time such as 90 (seconds), 5m or 1h30m"},
      {"join_timeout=nan",
       "--rdzv-conf join_timeout 'nan': expected a time such as 90 (seconds), 5m or 1h30m"},
      {"join_timeout=1000000001", "--rdzv-conf join_timeout '1000000001': that is too long"},
      {"join_timeout=0", "--rdzv-conf join_timeout '0': expected a time greater than zero"},
      {"read_timeout=-1",
       "--rdzv-conf read_timeout '-1': expected a time such as 90 (seconds), 5m or 1h30m"},
      {"keep_alive_max_attempt=1.5",
       "--rdzv-conf keep_alive_max_attempt '1.5': expected a whole number from 1 to 1000000"},
      {"keep_alive_max_attempt=0",
       "--rdzv-conf keep_alive_max_attempt '0': expected a whole number from 1 to 1000000"},
      {"keep_alive_interval=0.001,keep_alive_max_attempt=1",
       "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is how long a node may be "
       "silent; it must be from one second to 17 hours"},
      {"keep_alive_interval=20000,keep_alive_max_attempt=4",
       "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is how long a node may be "
       "silent; it must be from one second to 17 hours"},
      {"keep_alive_interval=0.333",
       "--rdzv-conf: keep_alive_interval times keep_alive_max_attempt is how long a node may be "
       "silent; it must be from one second to 17 hours"},
      {"is_host=maybe", "--rdzv-conf 'is_host=maybe': expected true or false"},
      {"rank=-1", "--rdzv-conf rank '-1': expected a whole number from 0 to 1000000"},
      {"successors=17", "--rdzv-conf successors '17': expected a whole number from 0 to 16"},
      {"quorum=most", "--rdzv-conf quorum 'most': expected a whole number from 0 to 1000000"},
      {"store_type=file",
       "--rdzv-conf 'store_type=file': drun's store is reached over TCP only: store_type=tcp"},
      {"backend=c10d", "--rdzv-conf 'backend=c10d': this is set by --rdzv-backend"},
      {"endpoint=h", "--rdzv-conf 'endpoint=h': this is set by --rdzv-endpoint"},
      {"run_id=1", "--rdzv-conf 'run_id=1': this is set by --rdzv-id"},
      {"min_nodes=1", "--rdzv-conf 'min_nodes=1': this is set by --nnodes"},
      {"local_addr=h", "--rdzv-conf 'local_addr=h': this is set by --local-addr"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(parse_line("--rdzv-conf " + std::string(each.line) + " p").text,
              "drun: error: " + std::string(each.meaning) + "\n");
  }
  EXPECT_EQ(parse_line("p", {"PET_RDZV_CONF=x=1"}).text.substr(0, 44),
            "drun: error: PET_RDZV_CONF: unknown key 'x';");
}

}  // namespace
}  // namespace drun::launcher
