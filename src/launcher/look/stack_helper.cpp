#include "launcher/look/stack_helper.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/environment_variable.hpp"
#include "base/standard_streams.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/looker.hpp"
#include "launcher/look/node_look.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRequestLimit{10'000};
constexpr std::size_t kLongestRequest = 4U << 20;

}  // namespace

int run_stack_helper() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "drun-stacks");
  // libdw would ask servers for debug information.
  ::unsetenv("DEBUGINFOD_URLS");
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);  // held_threads.hpp waits for it
  const auto request =
      decode_request(read_standard_input_line(kLongestRequest, Clock::now() + kRequestLimit));
  if (!request) return 1;
  LookTools tools;
  std::vector<stacks::StackNote> notes;
  tools.unwind = request->unwind;
  if (request->unwind) {
    if (auto library = load_dwfl())
      tools.native = *library;
    else
      notes.push_back({library.error().what(), {request->node.ranks}});
    tools.python = find_python_tool(environment_variable(own_environment(), "PATH").value_or(""));
  }
  const auto written = write_standard_output(
      to_json_within(look_at_node(*request, tools, std::move(notes)), request->longest) + "\n");
  return written ? 0 : 1;
}

}  // namespace drun::launcher
