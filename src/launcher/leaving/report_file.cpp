#include "launcher/leaving/report_file.hpp"

#include <memory>
#include <utility>

#include "base/file_worker.hpp"

namespace drun::launcher {
namespace {

// However the work ends.
struct SetAtEnd {
  std::promise<void>& promise;
  ~SetAtEnd() { promise.set_value(); }
};

}  // namespace

void ReportFile::begin(std::function<void(const std::string& why)> failed) {
  const auto work = running_report(path_);
  if (!work) return;
  auto over = std::make_shared<std::promise<void>>();
  begun_ = over->get_future().share();
  desk_.emplace(io_, [] {});
  desk_->ask<Status>(
      kFilesLimit,
      [over = std::move(over), work] {
        const SetAtEnd end{*over};
        return work();
      },
      [this, failed = std::move(failed)](const Result<Status>& written) {
        desk_->cancel();
        if (!written || *written) return;  // without an answer the end may still get one
        failed_ = true;
        failed(written->error().what());
      });
}

WriteFile ReportFile::end(const rendezvous::Outcome& outcome, const NodeEnd& node,
                          bool knows) const {
  const auto work = report_file(path_, outcome, node, knows);
  if (!work || failed_) return nullptr;
  return [path = path_, begun = begun_, work] {
    about_to("write " + path);
    if (begun.valid()) begun.wait();
    return work();
  };
}

void ReportFile::cancel() {
  if (desk_) desk_->cancel();
}

}  // namespace drun::launcher
