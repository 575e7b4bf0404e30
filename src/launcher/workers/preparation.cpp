#include "launcher/workers/preparation.hpp"

#include <utility>

#include "base/fd_limit.hpp"

namespace drun::launcher {

LaunchError no_output(const std::system_error& failed) {
  LaunchError result;
  result.error = failed.code().value();
  result.attempted = failed.what();
  const std::string reason = ": " + failed.code().message();
  if (result.attempted.ends_with(reason))
    result.attempted.resize(result.attempted.size() - reason.size());
  result.advice = fd_limit_advice(failed.code());
  result.of_drun = true;
  return result;
}

Preparation prepare(const Program& program, const std::vector<StreamLabel>& labels,
                    const MakeFiles& make_files) {
  Preparation result;
  auto for_all = check_program(program);
  for (const StreamLabel& label : labels) {
    PreparedWorker worker;
    worker.refusal = for_all ? for_all : check_script(program, label.local_rank);
    if (!worker.refusal) {
      try {
        worker.files = make_files(label);
      } catch (const std::system_error& failed) {
        worker.refusal = for_all = no_output(failed);
      }
    }
    result.workers.push_back(std::move(worker));
  }
  result.one_reason = for_all.has_value();
  if (!result.one_reason) result.warning = shell_warning(program);
  return result;
}

}  // namespace drun::launcher
