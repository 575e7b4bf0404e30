// What is told of a job while it runs: --status-listen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "launcher/options/replica_group.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse_line;
using ::testing::HasSubstr;

TEST(StatusOptionsTest, APortIsThisMachinesAloneAndAnAddressIsInNumbers) {
  const auto endpoint = [](const std::string& value) {
    return options_of("--status-listen " + value + " ./train").status_endpoint;
  };
  EXPECT_EQ(endpoint("9000"), (Endpoint{"127.0.0.1", 9000}));
  EXPECT_EQ(endpoint("0"), (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(endpoint("0.0.0.0:9000"), (Endpoint{"0.0.0.0", 9000}));
  EXPECT_EQ(endpoint("[::]:9000"), (Endpoint{"::", 9000}));
  EXPECT_EQ(endpoint("localhost:9000"), (Endpoint{"localhost", 9000}));
  EXPECT_EQ(options_of("./train").status_endpoint, std::nullopt);
  for (const char* wrong : {"node7:9000", "127.0.0.1", ":9000", "localhost", "9000x", "70000"})
    EXPECT_THAT(parse_line("--status-listen " + std::string(wrong) + " ./train").text,
                HasSubstr("--status-listen '" + std::string(wrong) + "': expected PORT"));
}

TEST(StatusOptionsTest, AnEmptyValueIsAMistake) {
  EXPECT_THAT(parse_line("--status-listen= ./train").text,
              HasSubstr("--status-listen '': expected PORT"));
  EXPECT_THAT(parse_line("--metrics-file= ./train").text,
              HasSubstr("--metrics-file '': expected the name of a file"));
}

TEST(StatusOptionsTest, ASocketHasAPathThatFits) {
  const Options options = options_of("--status-listen unix:/run/x.sock ./train");
  EXPECT_EQ(options.status_socket, "/run/x.sock");
  EXPECT_EQ(options.status_endpoint, std::nullopt);
  EXPECT_THAT(parse_line("--status-listen unix: ./train").text, HasSubstr("expected the path"));
  EXPECT_THAT(parse_line("--status-listen unix:/" + std::string(107, 'x') + " ./train").text,
              HasSubstr("at most 107 bytes, and this one has 108"));
  EXPECT_THAT(
      parse_line("--replica-groups 2 --status-listen unix:/" + std::string(100, 'x') + " ./train")
          .text,
      HasSubstr("at most 100 bytes (and .group1), and this one has 101"));
}

TEST(StatusOptionsTest, ATokenIsForTheAgentsAndForThePage) {
  const Options options = options_of("--status-listen 9000 --token-file /run/token ./train");
  EXPECT_EQ(options.token_file, "/run/token");
  EXPECT_FALSE(options.token) << "it is read by the agent";
  EXPECT_TRUE(options.notes.empty());
  EXPECT_TRUE(options_of("--token-file /run/token ./train").notes.empty());
  EXPECT_THAT(parse_line("--token-file= ./train").text, HasSubstr("expected the name of a file"));
}

// It is not what a command line may hold, and workers would get it.
TEST(StatusOptionsTest, ATokenIsNoVariableToHandOver) {
  for (const std::string asked :
       {"-x DRUN_TOKEN", "-x DRUN_TOKEN=0123456789abcdef", "-x DRUN_MADE_TOKEN=0123456789abcdef"}) {
    const std::string text = parse_line("-H node0,node1 " + asked + " ./train").text;
    EXPECT_THAT(text,
                HasSubstr("_TOKEN is no variable to hand over: set DRUN_TOKEN in drun's own"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("0123")));
  }
}

// Where agents that drun starts host the store themselves.
TEST(StatusOptionsTest, ATokenIsMadeIfNobodyElseCanHaveTheStore) {
  EXPECT_TRUE(options_of("-H node0,node1 ./train").makes_token);
  for (const std::string line : {"-H node0 ./train", "-H node0,node1 --rdzv-endpoint s:1 ./train",
                                 "--local-nodes 2 ./train", "./train"})
    EXPECT_FALSE(options_of(line).makes_token) << line;
}

TEST(StatusOptionsTest, TheCollectorReadsOnlyItsOwnNames) {
  EXPECT_EQ(options_of("--metrics-file /var/x.prom ./train").metrics_file, "/var/x.prom");
  EXPECT_THAT(parse_line("--metrics-file /var/x ./train").text, HasSubstr("end in .prom"));
  EXPECT_FALSE(options_of("./train").summary);
  EXPECT_TRUE(options_of("--summary ./train").summary);
}

TEST(StatusOptionsTest, EachReplicaGroupHasItsOwnPlace) {
  Options options = options_of("--status-listen 9000 ./train");
  belong_to_group(options, 2);
  EXPECT_EQ(options.status_endpoint->port, 9002);
  options = options_of("--status-listen 0 ./train");
  belong_to_group(options, 2);
  EXPECT_EQ(options.status_endpoint->port, 0);
  options = options_of("--status-listen unix:/run/x ./train");
  belong_to_group(options, 2);
  EXPECT_EQ(options.status_socket, "/run/x.group2");
  options = options_of("--metrics-file /var/x.prom ./train");
  belong_to_group(options, 2);
  EXPECT_EQ(options.metrics_file, "/var/x.group2.prom");
  EXPECT_EQ(options_of("--replica-groups 2 --status-listen 65534 ./train").status_endpoint->port,
            65534);
  EXPECT_THAT(parse_line("--replica-groups 2 --status-listen 65535 ./train").text,
              HasSubstr("--status-listen '65535': each replica group has a port of its own"));
  EXPECT_THAT(
      parse_line("--replica-groups 2 --replica-group-id 1 --status-listen 65535 ./train").text,
      HasSubstr("each replica group has a port of its own"));
  EXPECT_EQ(options_of("--status-listen 65535 ./train").status_endpoint->port, 65535);
}

}  // namespace
}  // namespace drun::launcher
