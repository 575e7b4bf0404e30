// What the tests of the agent run: the tests, or with these arguments an agent.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "base/environment_variable.hpp"
#include "base/log.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/command_line/parse.hpp"
#include "launcher/look/stack_helper.hpp"

int main(int argc, char** argv) {
  using namespace drun;
  // An agent runs its own program for this, which is this one.
  if (argc == 2 && argv[1] == launcher::kStackHelperFlag) return launcher::run_stack_helper();
  if (argc > 1 && std::string_view(argv[1]) == "--be-agent") {
    std::vector<std::string> arguments{"drun"};
    arguments.insert(arguments.end(), argv + 2, argv + argc);
    const auto parsed = launcher::parse_options(arguments, own_environment());
    if (!parsed.options) {
      std::fputs(parsed.text.c_str(), stderr);
      return parsed.exit_code;
    }
    log::configure("drun", parsed.options->quiet ? log::Level::Error : log::Level::Info);
    try {
      return launcher::run_agent(*parsed.options);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 99;
    }
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
