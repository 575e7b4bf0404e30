#include "launcher/look/take_stacks.hpp"

#include <chrono>

#include "launcher/look/stack_helper.hpp"

namespace drun::launcher {
namespace {

// For its start, and to say what it has found.
constexpr std::chrono::seconds kMargin{5};

}  // namespace

Result<std::string> take_stacks(const LookRequest& request, ChildStop& stop) {
  ChildProgram helper;
  helper.path = "/proc/self/exe";
  helper.name = "drun's helper for stacks";
  helper.arguments = {"drun", std::string(kStackHelperFlag)};
  helper.input = encode(request) + "\n";
  helper.own_group = true;
  return output_of(helper, std::chrono::steady_clock::now() + request.all + kMargin, stop);
}

}  // namespace drun::launcher
