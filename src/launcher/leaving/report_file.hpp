// --report FILE while an agent lives: at first it says that the job runs, then how it ended.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/file_desk.hpp"
#include "launcher/report/outcome_report.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`.
class ReportFile {
 public:
  // `path` may be empty: then there is none.
  ReportFile(asio::io_context& io, std::string path) : io_(io), path_(std::move(path)) {}
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  // In a thread of its own, which may hang: nobody waits for it but end(). `failed` is called from
  // the loop if the file cannot be written.
  void begin(std::function<void(const std::string& why)> failed);
  // Writes the end, after what begin() writes. Empty: there is no file, or none can be written.
  [[nodiscard]] WriteFile end(const rendezvous::Outcome& outcome, const NodeEnd& node,
                              bool knows) const;
  // begin() calls nobody any more.
  void cancel();

 private:
  asio::io_context& io_;
  const std::string path_;
  std::optional<FileDesk> desk_;
  std::shared_future<void> begun_;
  bool failed_ = false;
};

}  // namespace drun::launcher
