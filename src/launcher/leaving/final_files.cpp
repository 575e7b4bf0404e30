#include "launcher/leaving/final_files.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file_worker.hpp"

namespace drun::launcher {

FinalFiles::File::File(asio::io_context& io, std::function<void(const std::string&)> say)
    : desk(io, [] {}), failed(std::move(say)) {}

void FinalFiles::write(std::function<Status()> work,
                       const std::function<void(const std::string& why)>& failed) {
  if (!work) return;
  try {
    File& file = files_.emplace_back(io_, failed);
    file.desk.ask<Status>(kFilesLimit, std::move(work), [this, &file](Result<Status> written) {
      const Status result = written ? std::move(*written) : Status(written.error());
      end(file, result ? "" : result.error().what());
    });
  } catch (const std::system_error& no_thread) {
    failed(no_thread.what());
  }
}

void FinalFiles::when_over(std::function<void()> over) {
  over_ = std::move(over);
  look();
}

void FinalFiles::give_up(const std::string& why) {
  for (File& file : files_)
    if (!file.over) end(file, "given up: " + why);
}

void FinalFiles::end(File& file, const std::string& error) {
  file.over = true;
  file.desk.cancel();
  if (!error.empty()) file.failed(error);
  look();
}

void FinalFiles::look() {
  const auto over = [](const File& file) { return file.over; };
  if (over_ && std::all_of(files_.begin(), files_.end(), over)) std::exchange(over_, nullptr)();
}

}  // namespace drun::launcher
