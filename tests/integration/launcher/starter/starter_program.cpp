// What the tests of the starter run: this program plays all parts.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "base/log.hpp"
#include "integration/launcher/starter/starter_rig.hpp"
#include "launcher/options/options.hpp"
#include "launcher/starter/remote_end.hpp"
#include "launcher/starter/start_hosts.hpp"

namespace {

using drun::launcher::Options;

// An agent runs the program itself, which finds its node's number in NODE and its flags in FLAGS.
int be_agent(char** arguments) {
  std::string flags;
  for (; *arguments != nullptr && std::strcmp(*arguments, "--") != 0; ++arguments) {
    const std::string_view flag = *arguments;
    constexpr std::string_view kRank = "--node-rank=";
    if (flag.starts_with(kRank)) ::setenv("NODE", *arguments + kRank.size(), 1);
    flags += std::string(flag) + " ";
  }
  ::setenv("FLAGS", flags.c_str(), 1);
  ::execvp(arguments[1], arguments + 1);
  return 127;
}

// --start MIN FAN_OUT DIRECTORY HOSTS LAUNCHER SCRIPT
int be_starter(const std::vector<std::string>& arguments) {
  Options options;
  options.min_nodes = std::stoi(arguments[0]);
  options.signals_to_handle = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  options.quit_stops = true;
  options.forward_signals = {SIGUSR1};
  drun::launcher::hosts::StartPlan plan;
  plan.fan_out = std::stoul(arguments[1]);
  plan.directory = arguments[2];
  for (std::string_view rest = arguments[3]; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    plan.hosts.emplace_back().name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  plan.launcher = drun::launcher::hosts::parse_launcher(arguments[4]).value();
  plan.drun = drun::launcher::test::this_program();
  plan.flags = {std::string(drun::launcher::test::kAgent)};
  plan.program = {"sh", "-c", arguments[5]};
  plan.environment = {"HANDED=over"};
  options.start = std::move(plan);
  if (const char* report = std::getenv("REPORT")) options.report_file = report;
  drun::log::configure("drun", drun::log::Level::Info);
  return drun::launcher::run_hosts(options);
}

}  // namespace

int main(int argc, char** argv) {
  namespace test = drun::launcher::test;
  if (argc == 2 && argv[1] == drun::launcher::hosts::kRemoteEndFlag)
    return drun::launcher::run_remote_end();
  if (argv[0] == test::kAgent) return be_agent(argv);
  if (argc == 8 && argv[1] == test::kStart) return be_starter({argv + 2, argv + argc});
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
