#include "ctl/drunctl_timeline.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "timeline/clock_notes.hpp"
#include "timeline/clocks.hpp"
#include "timeline/event_log.hpp"
#include "timeline/runs.hpp"
#include "timeline/timeline.hpp"
#include "timeline/timeline_page.hpp"
#include "timeline/trace_json.hpp"

namespace drun::ctl {
namespace {

using timeline::FileCount;
using timeline::LogReader;

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw cli::UsageError("timeline " + in_quotes(path) + ": " + why);
}

FileCount read_events(const std::string& path, LogReader& reader) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    refuse_file(path, "Is a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse_file(path, std::generic_category().message(errno));
  std::array<char, 65'536> buffer{};
  do {
    in.read(buffer.data(), buffer.size());
    reader.add({buffer.data(), static_cast<std::size_t>(in.gcount())});
  } while (in);
  if (in.bad()) refuse_file(path, "it cannot be read");
  return reader.end_file();
}

// What the picture lacks of a file.
std::vector<std::string> notes_of(const std::string& path, const FileCount& count) {
  std::vector<std::string> notes;
  const std::string name = as_name(path);
  if (count.foreign > 0)
    notes.push_back(name + ": " + counted(count.foreign, "line") + " without an event left out");
  if (count.torn) notes.push_back(name + ": its last line is cut off");
  if (count.repeated > 0)
    notes.push_back(name + ": " + counted(count.repeated, "event") + " seen before left out");
  return notes;
}

}  // namespace

int draw_timeline(const CtlOptions& options) {
  LogReader reader;
  std::vector<std::string> notes;
  for (const std::string& path : options.words) {
    const FileCount count = read_events(path, reader);
    if (count.events == 0) {
      log::error("{}: {}: name a file that drun --events wrote", as_name(path),
                 count.foreign > 0 || count.torn ? "it holds no events" : "it is empty");
      return kNo;
    }
    for (std::string& note : notes_of(path, count))
      notes.push_back(std::move(note));
  }
  timeline::Log told = std::move(reader).finish();
  const auto runs = timeline::runs_of(told);
  for (std::string& note : timeline::sentences_of(timeline::set_clocks_right(told, runs)))
    notes.push_back(std::move(note));
  timeline::Timeline picture = timeline::make_timeline(told, runs);
  for (const std::string& note : notes)
    log::info("{}", note);
  picture.notes = std::move(notes);
  const std::string text =
      options.html ? timeline::timeline_page(picture) : timeline::trace_json(picture);
  if (!options.output || *options.output == "-") {
    print(text);
    return kOk;
  }
  const Status written = write_whole_file(*options.output, text);
  if (written) return kOk;
  log::error("{}", escaped(written.error().what()));
  return kDrunFailed;
}

}  // namespace drun::ctl
