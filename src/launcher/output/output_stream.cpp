#include "launcher/output/output_stream.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/pipe.hpp"
#include "launcher/output/output_terminal.hpp"

namespace drun::launcher {

FileDescriptor Stream::open_source(int own, bool may_be_terminal) {
  if (may_be_terminal && ::isatty(own) != 0) {
    Terminal opened = open_terminal(own, columns_before());
    terminal = true;
    source = std::move(opened.master);
    return std::move(opened.slave);
  }
  Pipe pipe = make_pipe("make a pipe for the output");
  source = std::move(pipe.read);
  ::fcntl(source.get(), F_SETFL, O_NONBLOCK);
  return std::move(pipe.write);
}

std::string Stream::line_start() const {
  std::string text = stamped ? time_stamp(std::chrono::system_clock::now()) : std::string{};
  return text + (folding != nullptr ? fold_prefix({rank}) : prefix);
}

Begins Stream::begins() const {
  if (!line_state.open || was_cut) return Begins::Line;
  return line_state.at_line_start ? Begins::Return : Begins::Middle;
}

void Stream::stage(std::string_view lines) {
  Begins how = begins();
  // Others have written over its bar: the end of the line alone would be a prefix with nothing.
  if (was_cut && line_state.has_return && lines.starts_with('\n')) {
    staged.append(line_start() + bar);
    how = Begins::Middle;
  }
  append_lines(staged, lines, line_start(), how);
  if (!raw()) bar = bar_after(std::move(bar), line_state.at_line_start, lines);
  line_state = state_after(line_state, lines);
  if (folding != nullptr) line_state.too_long = false;  // the ranks stand in lines of their own
}

void Stream::take(std::string_view bytes, Time now) {
  if (console == nullptr && filter == nullptr) return;
  if (!unfinished.empty()) {
    const auto newline = bytes.find('\n');
    const std::size_t count = newline == std::string_view::npos ? bytes.size() : newline + 1;
    unfinished += bytes.substr(0, count);
    bytes.remove_prefix(count);
    if (newline == std::string_view::npos && (is_whole() || unfinished.size() < kLongestLine))
      return;
    const std::string line = std::exchange(unfinished, {});
    take_lines(line, now);
  }
  const std::size_t whole = is_whole() ? bytes.rfind('\n') + 1 : whole_lines(bytes, 0);
  if (whole > 0) take_lines(bytes.substr(0, whole), now);
  unfinished.assign(bytes.substr(whole));
}

void Stream::take_lines(std::string_view lines, Time now) {
  if (filter != nullptr) {
    std::string_view rest = lines;
    if (!shown_unfinished.empty()) {
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
      shown_unfinished += lines.substr(0, lines.size() - rest.size());
      filter->lines(prefix, shown_unfinished);
      shown_unfinished.clear();
    }
    filter->lines(prefix, rest);
  }
  if (console == nullptr) return;
  if (folding != nullptr && line_state.open) {  // the rest of a line that was shown unfinished
    const auto newline = lines.find('\n');
    const std::size_t length = newline == std::string_view::npos ? lines.size() : newline + 1;
    stage(lines.substr(0, length));
    lines.remove_prefix(length);
  }
  if (folding == nullptr) return stage(lines);
  while (!lines.empty()) {
    const auto newline = lines.find('\n');
    const std::size_t length = newline == std::string_view::npos ? lines.size() : newline + 1;
    folding->folder.add(rank, lines.substr(0, length), now);
    lines.remove_prefix(length);
  }
}

void Stream::stage_unfinished() {
  if (filter != nullptr && shown_unfinished.size() < kLongestLine) shown_unfinished += unfinished;
  stage(unfinished);
  unfinished.clear();
}

void Stream::finish(Time now) {
  if (filter != nullptr && !(shown_unfinished + unfinished).empty()) {
    filter->lines(prefix, shown_unfinished + unfinished);
  }
  shown_unfinished.clear();
  if (folding != nullptr) {
    if (!unfinished.empty() && !line_state.open) {
      folding->folder.add(rank, unfinished + '\n', now);
      unfinished.clear();
    }
    folding->folder.leave(rank);
  }
  if (console == nullptr) unfinished.clear();
}

bool Folding::flush(LineFolder::Time now) {
  bool any = false;
  const std::string time = stamped ? time_stamp(std::chrono::system_clock::now()) : std::string{};
  std::string start;
  while (const auto folded = folder.next(now)) {
    start.assign(time).append(folded->prefix);
    append_lines(out.staged, folded->lines, start, Begins::Line);
    out.line_state = state_after({}, folded->lines);
    any = true;
  }
  return any;
}

}  // namespace drun::launcher
