#include "launcher/report/failure_report.hpp"

#include <algorithm>
#include <utility>

#include "base/counted.hpp"
#include "base/ink.hpp"
#include "base/number_ranges.hpp"
#include "base/trimmed.hpp"
#include "launcher/output/sanitize.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/messages.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kLineLimit = 512;
constexpr std::size_t kHeadlineLimit = 160;
constexpr std::size_t kScreen = 24;
constexpr std::size_t kUsualTail = 20;

// Harmless lines without blank ones at the ends.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto newline = text.find('\n');
    lines.push_back(harmless_line(text.substr(0, newline), kLineLimit));
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
  }
  while (!lines.empty() && trimmed(lines.back()).empty())
    lines.pop_back();
  while (!lines.empty() && trimmed(lines.front()).empty())
    lines.erase(lines.begin());
  return lines;
}

std::string cause_line(const std::string& text, const ReportOptions& options) {
  return options.program + ": " + (options.color ? painted(text, Ink::Cause) : text);
}

// Newer versions of torch put "[rank3]: " before each line of a traceback.
std::string_view without_rank_mark(std::string_view line) {
  constexpr std::string_view kMark = "[rank";
  if (!line.starts_with(kMark)) return line;
  const auto end = line.find_first_not_of("0123456789", kMark.size());
  if (end == kMark.size() || end == std::string_view::npos) return line;
  if (!line.substr(end).starts_with("]:")) return line;
  line.remove_prefix(end + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

bool is_frame(std::string_view line) {
  return line.starts_with(' ') || line.starts_with('\t');
}

// Whether both were one line. A long one was cut where it was read, perhaps behind a mark.
bool same_line(std::string_view a, std::string_view b) {
  const auto kept = [](std::string_view line) {
    line = trimmed(without_rank_mark(line));
    return line.ends_with(" bytes more)") ? line.substr(0, line.rfind("... (")) : line;
  };
  a = kept(a);
  b = kept(b);
  const bool cut = std::min(a.size(), b.size()) > kLineLimit / 2;
  return a == b || (cut && (a.starts_with(b) || b.starts_with(a)));
}

bool contains(const std::vector<std::string>& lines, std::string_view wanted) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return same_line(line, wanted); });
}

// How the part of stderr that repeats the traceback ends. An error file may say once more, below,
// what its writer made of the exception.
const std::string* end_in(const std::vector<std::string>& tail,
                          const std::vector<std::string>& traceback) {
  const std::string& last = traceback.back();
  if (contains(tail, last)) return &last;
  for (auto line = traceback.rbegin() + 1; line != traceback.rend(); ++line)
    if (!trimmed(*line).empty() && !is_frame(*line))
      return contains(tail, *line) ? &*line : nullptr;
  return nullptr;
}

// stderr without the parts that only repeat the traceback: Python prints it there as well, with
// frames of its own in between, and the program may have logged it before.
std::vector<std::string> without_repetition(std::vector<std::string> tail,
                                            const std::vector<std::string>& traceback) {
  if (traceback.empty()) return tail;
  const std::string* const ends = end_in(tail, traceback);
  if (ends == nullptr) return tail;
  for (auto end = tail.size(); end > 0; --end) {
    if (!same_line(tail[end - 1], *ends)) continue;
    auto begin = end - 1;
    while (begin > 0) {
      const std::string_view line = without_rank_mark(tail[begin - 1]);
      if (!is_frame(line) && !contains(traceback, line) &&
          !line.starts_with("Traceback (most recent"))
        break;
      --begin;
    }
    tail.erase(tail.begin() + static_cast<std::ptrdiff_t>(begin),
               tail.begin() + static_cast<std::ptrdiff_t>(end));
    end = begin + 1;
  }
  const bool blank = std::all_of(tail.begin(), tail.end(),
                                 [](const std::string& line) { return trimmed(line).empty(); });
  return blank ? std::vector<std::string>{} : tail;
}

std::string left_out(std::size_t count) {
  return "... " + counted(count, "line") + " left out";
}

// The first few lines and the last ones: at most `most` lines in all, the mark included.
void shorten_middle(std::vector<std::string>& lines, std::size_t most) {
  most = std::max<std::size_t>(most, 3);
  if (lines.size() <= most) return;
  const std::size_t head = std::min<std::size_t>(2, most / 3);
  const std::size_t count = lines.size() - (most - 1);
  const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(head);
  *begin = left_out(count);
  lines.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(count));
}

void shorten_front(std::vector<std::string>& lines, std::size_t most) {
  most = std::max<std::size_t>(most, 2);
  if (lines.size() <= most) return;
  const std::size_t count = lines.size() - (most - 1);
  lines.front() = left_out(count);
  lines.erase(lines.begin() + 1, lines.begin() + static_cast<std::ptrdiff_t>(count));
}

// `most` is not 0.
void shorten_end(std::vector<std::string>& lines, std::size_t most) {
  if (lines.size() <= most) return;
  const std::size_t count = lines.size() - (most - 1);
  lines.resize(most);
  lines.back() = left_out(count);
}

struct Parts {
  std::vector<std::string> traceback;
  std::vector<std::string> tail;
  std::vector<std::string> others;
};

// Shares `room` lines out: the traceback helps most, then stderr, then the other ranks.
void fit(Parts& parts, std::size_t room) {
  const auto total = [&] {
    return parts.traceback.size() + parts.tail.size() + parts.others.size();
  };
  if (total() <= room) return;
  shorten_end(parts.others, std::max<std::size_t>(4, room / 5));
  const std::size_t left = room - std::min(room, parts.others.size());
  if (parts.traceback.empty()) {
    shorten_front(parts.tail, left);
  } else if (parts.tail.empty()) {
    shorten_middle(parts.traceback, left);
  } else {
    const std::size_t for_tail = std::min(parts.tail.size(), std::max<std::size_t>(5, left / 3));
    shorten_middle(parts.traceback, left - std::min(left, for_tail));
    shorten_front(parts.tail, left - std::min(left, parts.traceback.size()));
  }
}

// But for the number of the rank that says it.
bool one_error(const rendezvous::FailureSummary& root, const rendezvous::FailedRanks& group) {
  return rendezvous::without_rank(group.last_words, group.ranks.front().first) ==
         rendezvous::without_rank(root.last_words, root.rank);
}

}  // namespace

std::size_t report_lines(std::size_t tail_lines) {
  return tail_lines <= kUsualTail ? kScreen : kScreen + (tail_lines - kUsualTail);
}

std::string describe(const rendezvous::FailureSummary& failure) {
  auto shown = rendezvous::without_details(failure);
  shown.host = harmless_line(failure.host, kHeadlineLimit);
  shown.cause = harmless_line(failure.cause, kLineLimit);
  return rendezvous::failure_text(shown);
}

std::string headline(std::string_view traceback, const std::vector<std::string>& tail) {
  const auto lines = lines_of(traceback);
  const auto essence = [](std::string_view line) {
    return harmless_line(trimmed(without_rank_mark(line)), kHeadlineLimit);
  };
  if (!lines.empty()) return essence(lines.back());
  for (auto line = tail.rbegin(); line != tail.rend(); ++line)
    if (!trimmed(without_rank_mark(*line)).empty()) return essence(*line);
  return {};
}

std::vector<std::string> describe_others(const rendezvous::FailureSummary& root) {
  std::vector<std::string> lines;
  for (const auto& group : root.others) {
    std::string line = ranks_text(group.ranks) + ": " + harmless_line(group.cause, kLineLimit);
    if (!group.last_words.empty() && one_error(root, group))
      line += ", same error";
    else if (!group.last_words.empty())
      line += ": " + harmless_line(group.last_words, kHeadlineLimit);
    lines.push_back(std::move(line));
  }
  if (root.unlisted > 0) lines.push_back(counted(root.unlisted, "more rank"));
  return lines;
}

std::string render_suspicion(std::string_view suspicion, const ReportOptions& options) {
  return cause_line(harmless_line(suspicion, kLineLimit), options) + '\n';
}

std::string render_failure(const rendezvous::FailureSummary& root,
                           const std::vector<std::string>& notes, const ReportOptions& options) {
  std::vector<std::string> head{cause_line(options.title + ": " + describe(root), options)};
  for (const auto& note : notes)
    head.push_back("  " + harmless_line(note, kLineLimit));

  Parts parts;
  parts.traceback = lines_of(root.traceback);
  std::string raw_tail;
  for (const auto& line : root.tail)
    raw_tail += line + '\n';
  parts.tail = without_repetition(lines_of(raw_tail), parts.traceback);
  parts.others = describe_others(root);

  std::vector<std::string> foot;
  if (!root.core_file.empty())
    foot.push_back("  core: " + harmless_line(root.core_file, kLineLimit));
  if (!root.log_file.empty())
    foot.push_back("  log: " + harmless_line(root.log_file, kLineLimit) +
                   (root.host.empty() ? "" : " on " + harmless_line(root.host, kHeadlineLimit)));

  const std::size_t titles = (parts.traceback.empty() ? 0U : 1U) + (parts.tail.empty() ? 0U : 1U) +
                             (parts.others.empty() ? 0U : 1U);
  const std::size_t taken = head.size() + foot.size() + titles;
  fit(parts, options.lines - std::min(options.lines, taken));

  std::string text;
  for (const auto& line : head)
    text += line + '\n';
  const auto add = [&](const char* title, const std::vector<std::string>& lines, const char* mark) {
    if (lines.empty()) return;
    text += std::string("  ") + title + '\n';
    for (const auto& line : lines)
      text += mark + line + '\n';
  };
  add("error:", parts.traceback, "  | ");
  add("last lines of stderr:", parts.tail, "  | ");
  for (const auto& line : foot)
    text += line + '\n';
  add("also failed:", parts.others, "    ");
  return text;
}

}  // namespace drun::launcher
