#include "launcher/views/metrics_file.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "jobs/metrics.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// However the work ends.
struct TellEnd {
  std::promise<void>& promise;
  ~TellEnd() { promise.set_value(); }
};

}  // namespace

MetricsFile::MetricsFile(asio::io_context& io, std::string path, const std::string& run_id,
                         std::function<status::AgentStatus()> own)
    : path_(std::move(path)),
      own_(std::move(own)),
      watch_(run_id, kWatch, JobWatch::AtEnd::KeepWhatWas),
      desk_(io, [] {}),
      timer_(io, [this] { write(); }) {}

void MetricsFile::open() {
  write();
}

void MetricsFile::close() {
  ended_ = true;
  timer_.set(std::nullopt);
  desk_.cancel();
  watch_.set_link(nullptr);
}

bool MetricsFile::on_event(const rendezvous::KeyValueEvent& event) {
  const bool taken = watch_.on_event(event);
  const bool knows = watch_.documents() != nullptr;
  if (knows && !std::exchange(knew_, knows) && !ended_) timer_.set(Clock::now());
  return taken;
}

void MetricsFile::write() {
  if (ended_) return;
  timer_.set(Clock::now() + kPeriod);
  if (const auto own = own_(); own.round > 0) tells_of_job_ = own.group_rank == 0;
  if (tells_of_job_)
    watch_.begin();
  else
    watch_.end();
  if (std::exchange(busy_, true)) return;  // the file system takes its time
  auto over = std::make_shared<std::promise<void>>();
  writing_ = over->get_future().share();
  desk_.ask<Status>(
      kFilesLimit,
      [over, path = path_, make = text()] {
        const TellEnd end{*over};
        return write_whole_file(path, make());
      },
      [this](const Result<Status>& written) {
        busy_ = false;
        std::string error;
        if (!written)
          error = written.error().what();
        else if (!*written)
          error = written->error().what();
        tell(error);
      });
}

void MetricsFile::tell(const std::string& error) {
  if (!error.empty() && error != last_error_)
    log::warning("--metrics-file: {}; its folder must be there and writable", error);
  last_error_ = error;
}

std::function<std::string()> MetricsFile::text(const rendezvous::Outcome* outcome) const {
  const auto own = own_();
  const auto* known = watch_.documents();
  std::optional<jobs::Documents> documents;
  if (tells_of_job_) documents = known != nullptr ? *known : jobs::Documents();
  const auto end = outcome != nullptr ? std::optional(*outcome) : std::nullopt;
  return [own, documents, end] {
    if (!documents)
      return jobs::metrics_text(metrics_of(own), nullptr, false, jobs::MetricsFormat::Prometheus);
    auto job = job_of(*documents, own);
    if (job && end) {
      job->outcome = end;
      job->state = end->exit_code == 0 ? jobs::JobState::Succeeded : jobs::JobState::Failed;
    }
    return jobs::metrics_text(metrics_of(own), job ? &*job : nullptr, false,
                              jobs::MetricsFormat::Prometheus);
  };
}

WriteFile MetricsFile::last(const rendezvous::Outcome* outcome) {
  ended_ = true;
  timer_.set(std::nullopt);
  return [path = path_, before = writing_, make = text(outcome)]() -> Status {
    about_to("write " + path);
    if (before.valid()) before.wait();
    return write_whole_file(path, make());
  };
}

}  // namespace drun::launcher
