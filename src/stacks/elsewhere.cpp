#include "stacks/elsewhere.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "base/printable.hpp"

namespace drun::stacks {
namespace {

// Beyond them ranks are not told apart one by one.
constexpr std::size_t kMostRanks = 1'000'000;
constexpr std::size_t kMostPlaces = 3;  // that are described
constexpr std::size_t kMostFramesNamed = 2;
// So many times as many are together as stand out.
constexpr std::size_t kMany = 2;

constexpr std::array<std::string_view, 9> kWaitNames{
    "MPI_", "PMPI_", "ompi_", "MPIR_", "MPIDI_", "MPID_", "gloo::", "c10d::", "horovod::"};
// It may do its part of a collective, or the program's own work.
constexpr std::array<std::string_view, 9> kGpuNames{
    "cudaStreamSynchronize", "cudaDeviceSy", "cudaEventSy", "cuStreamSy", "cuCtxSy", "cuEventSy",
    "hipStreamSy",           "hipDeviceSy",  "hipEventSy"};
constexpr std::array<std::string_view, 6> kWaitFiles{"libnccl", "librccl", "libgloo",
                                                     "libmpi",  "libucp",  "distributed_c10d.py"};
// Of them those in which the way differs from rank to rank.
constexpr std::array<std::string_view, 5> kTransports{"libnccl", "librccl", "libgloo", "libmpi",
                                                      "libucp"};
// What they use to wait and to do what Python says.
constexpr std::array<std::string_view, 6> kSystemFiles{"libc.so",  "libc-",      "libpthread",
                                                       "ld-linux", "libstdc++.", "libm.so"};
constexpr std::array<std::string_view, 2> kInterpreters{"python", "libpython"};
// Of the C++ library, which is compiled into the program.
constexpr std::array<std::string_view, 4> kSystemNames{
    "std::", "void std::", "__gnu_cxx::", "__gthread_"};

struct Frame {
  std::string_view function;  // empty: it has no name
  std::string_view file;
};

// "function (file)", "file+0x1234"
Frame parts_of(std::string_view frame) {
  const auto bracket = frame.rfind(" (");
  if (bracket != std::string_view::npos && frame.ends_with(")"))
    return {frame.substr(0, bracket), frame.substr(bracket + 2, frame.size() - bracket - 3)};
  const auto offset = frame.rfind("+0x");
  if (offset != std::string_view::npos) return {{}, frame.substr(0, offset)};
  return {frame, {}};
}

template <typename Words>
bool begins_with_one(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.starts_with(word); });
}

// "train.py:41", "<string>:1"
bool is_line(std::string_view file) {
  const auto colon = file.rfind(':');
  return colon != std::string_view::npos && colon + 1 < file.size() &&
         std::all_of(file.begin() + static_cast<std::ptrdiff_t>(colon) + 1, file.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool waits_for_gpu(std::string_view frame) {
  return begins_with_one(parts_of(frame).function, kGpuNames);
}

// A GPU, as a rule, waits for those of other ranks.
bool waits_for_ranks_or_gpu(std::string_view frame) {
  return waits_for_ranks(frame) || waits_for_gpu(frame);
}

// Outermost first, and only so far as ranks that wait for one another agree: what a library does
// meanwhile differs from rank to rank, and so does where a loop is.
using Path = std::vector<std::string>;

Path path_of(const std::vector<std::string>& frames) {
  Path path;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame parts = parts_of(*frame);
    // An interpreter goes other ways for the same line.
    if (begins_with_one(parts.file, kInterpreters) && !is_line(parts.file)) continue;
    path.push_back(*frame);
    if (waits_for_ranks_or_gpu(*frame)) return path;
    const bool innermost = frame + 1 == frames.rend();
    if (innermost && parts.function.empty()) path.back() = std::string(parts.file);
  }
  return path;
}

// Ranks whose stacks are alike, as far as their path goes.
struct Class {
  Path path;
  const StackGroup* group = nullptr;  // one of them
  std::vector<NumberRange> ranks;
  std::size_t count = 0;
  bool waits = false;  // for other ranks, or for a GPU that does, as a rule
};

std::size_t count_all(const std::vector<const Class*>& classes) {
  std::size_t all = 0;
  for (const Class* each : classes)
    all += each->count;
  return all;
}

std::size_t count_common(const std::vector<NumberRange>& a, const std::vector<NumberRange>& b) {
  std::size_t common = 0;
  for (auto left = a.begin(), right = b.begin(); left != a.end() && right != b.end();) {
    const int first = std::max(left->first, right->first);
    const int last = std::min(left->last, right->last);
    if (first <= last) common += static_cast<std::size_t>(last - first + 1);
    left->last < right->last ? ++left : ++right;
  }
  return common;
}

// How many of these ranks are in one of the states.
std::size_t count_in_state(const StackReport& report, const std::vector<NumberRange>& ranks,
                           std::string_view states) {
  std::size_t found = 0;
  for (const StateRow& row : report.states)
    if (states.find(row.state) != std::string_view::npos) found += count_common(row.ranks, ranks);
  return found;
}

// A thread that has no stack, because the kernel keeps it or somebody holds it, is somewhere.
bool is_known(const StackReport& report, const StackGroup& group) {
  return !group.frames.empty() || count_in_state(report, group.ranks, "DTtZ") > 0;
}

std::vector<Class> classes_of(const StackReport& report) {
  std::map<std::pair<Path, std::string>, Class> classes;
  for (const StackGroup& group : report.groups) {
    if (group.kind != Kind::Worker || !is_known(report, group)) continue;
    Path path = path_of(group.frames);
    Class& mine = classes[{path, group.frames.empty() ? group.problem : ""}];
    mine.waits = !path.empty() && waits_for_ranks_or_gpu(path.back());
    mine.path = std::move(path);
    if (mine.group == nullptr) mine.group = &group;
    mine.ranks.insert(mine.ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  std::vector<Class> result;
  for (auto& [key, each] : classes) {
    each.ranks = united(std::move(each.ranks));
    each.count = count(each.ranks);
    result.push_back(std::move(each));
  }
  return result;
}

struct Split {
  std::vector<const Class*> few;
  std::vector<const Class*> many;
};

// Those that do not wait for others, if the others do.
Split by_waiting(const std::vector<Class>& classes) {
  Split split;
  for (const Class& each : classes)
    (each.waits ? split.many : split.few).push_back(&each);
  return split;
}

// Along the way that most have gone, from the outside in: those that leave it first. `unknown`:
// ranks that may be anywhere.
Split by_path(const std::vector<Class>& classes, std::size_t unknown) {
  std::vector<const Class*> together;
  for (const Class& each : classes)
    together.push_back(&each);
  for (std::size_t depth = 0; together.size() > 1; ++depth) {
    std::map<std::string_view, std::vector<const Class*>> ways;  // "": it ends here
    for (const Class* each : together)
      ways[depth < each->path.size() ? std::string_view(each->path[depth]) : ""].push_back(each);
    if (ways.size() == 1) {
      if (ways.begin()->first.empty()) break;  // they differ in their states alone
      continue;
    }
    const auto most = std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) {
      return count_all(a.second) < count_all(b.second);
    });
    Split split;
    split.many = most->second;
    for (const auto& [way, taken] : ways)
      if (way != most->first) split.few.insert(split.few.end(), taken.begin(), taken.end());
    const bool stands_out = count_all(split.many) >= kMany * (count_all(split.few) + unknown);
    // Who is called from where the others are has not left their way.
    return stands_out && !most->first.empty() ? split : Split();
  }
  return {};
}

// What another thread does for the collective that the first one waits for; but not what a library
// below does meanwhile. Empty: it does nothing for one.
Path helper_path(const std::vector<std::string>& frames) {
  Path path;
  bool helps = false;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const Frame parts = parts_of(*frame);
    const bool transport = begins_with_one(parts.file, kTransports);
    helps |= transport || waits_for_ranks(*frame);
    if (!transport || !parts.function.empty()) path.push_back(*frame);
    if (transport) break;
  }
  return helps ? path : Path();
}

// Ranks whose first threads wait alike, by what their other threads do for it: gloo's collectives
// run in threads, and the first ones wait for any in the same way.
std::vector<Class> classes_of_helpers(const StackReport& report) {
  std::map<Path, Class> helpers;
  for (const StackGroup& group : report.groups) {
    Path path = group.kind == Kind::Thread ? helper_path(group.frames) : Path();
    if (path.empty()) continue;
    Class& mine = helpers[path];
    mine.path = std::move(path);
    if (mine.group == nullptr) mine.group = &group;
    mine.ranks.insert(mine.ranks.end(), group.ranks.begin(), group.ranks.end());
  }
  std::vector<Class> result;
  for (auto& [path, each] : helpers) {
    each.ranks = united(std::move(each.ranks));
    each.count = count(each.ranks);
    each.waits = true;
    result.push_back(std::move(each));
  }
  return result;
}

// Those that do something by which few stand out, whatever else all do.
Split by_helper(const std::vector<Class>& helpers, std::size_t all) {
  Split split;
  for (const Class& each : helpers) {
    if (each.count == all) continue;
    (kMany * (all - each.count) <= each.count ? split.many : split.few).push_back(&each);
  }
  const bool stands_out = split.many.size() == 1 && split.few.size() == 1 &&
                          split.few.front()->count + split.many.front()->count == all &&
                          count_common(split.few.front()->ranks, split.many.front()->ranks) == 0;
  return stands_out ? split : Split();
}

// They are at work, where each is now and then somewhere else than the others.
bool runs(const StackReport& report, const std::vector<const Class*>& crowd) {
  std::size_t running = 0;
  for (const Class* each : crowd)
    if (!each->waits) running += count_in_state(report, each->ranks, "R");
  return 2 * running > count_all(crowd);
}

bool is_telling(std::string_view frame, int how) {
  const Frame parts = parts_of(frame);
  switch (how) {
    case 0:  // a line of a program
      return is_line(parts.file);
    case 1:  // a function of a program, or of a library that it uses
      return !parts.function.empty() && !begins_with_one(parts.file, kSystemFiles) &&
             !begins_with_one(parts.function, kSystemNames) &&
             !begins_with_one(parts.file, kInterpreters);
    case 2:  // what the C library is asked for
      return !parts.function.empty() && !parts.function.starts_with("_") && parts.file != "kernel";
    default:
      return !parts.function.empty();
  }
}

std::vector<std::string> telling(const std::vector<std::string>& frames, std::size_t most) {
  std::vector<std::string> found;
  for (int how = 0; found.empty() && how < 4; ++how) {
    for (const std::string& frame : frames)
      if (found.size() < (how < 2 ? most : 1) && is_telling(frame, how)) found.push_back(frame);
  }
  if (found.empty() && !frames.empty()) found.push_back(frames.front());
  return found;
}

// Without those from the outermost on that `other` has, too.
std::vector<std::string> distinctive(const std::vector<std::string>& frames,
                                     const std::vector<std::string>& other) {
  const auto common = std::mismatch(frames.rbegin(), frames.rend(), other.rbegin(), other.rend());
  std::vector<std::string> own(frames.begin(), common.first.base());
  if (own.empty() && !frames.empty()) own.push_back(frames.front());
  return own;
}

Elsewhere described(const Split& split, std::size_t all) {
  const auto fewer = [](const Class* a, const Class* b) { return a->count < b->count; };
  Elsewhere found;
  found.ranks = count_all(split.few);
  found.others = count_all(split.many);
  found.all = all;
  const Class& crowd = **std::max_element(split.many.begin(), split.many.end(), fewer);
  std::vector<const Class*> few = split.few;
  std::sort(few.begin(), few.end(), [](const Class* a, const Class* b) {
    return std::pair(a->count, a->ranks.front().first) <
           std::pair(b->count, b->ranks.front().first);
  });
  for (const Class* each : few) {
    const auto& frames = each->group->frames;
    found.places.push_back({each->ranks,
                            telling(distinctive(frames, crowd.group->frames), kMostFramesNamed),
                            frames.empty() ? each->group->problem : ""});
  }
  return found;
}

std::string place_text(const Elsewhere::Place& place) {
  if (place.frames.empty()) return printable(place.problem);
  std::string text = "in ";
  for (std::size_t i = 0; i < place.frames.size(); ++i)
    text += (i == 0 ? "" : ", called from ") + printable(place.frames[i]);
  return text;
}

}  // namespace

bool waits_for_ranks(std::string_view frame) {
  const Frame parts = parts_of(frame);
  const bool nccl = parts.function.size() > 4 && parts.function.starts_with("nccl") &&
                    std::isupper(static_cast<unsigned char>(parts.function[4])) != 0;
  return nccl || begins_with_one(parts.function, kWaitNames) ||
         begins_with_one(parts.file, kWaitFiles);
}

TellingFrame telling_frame(const std::vector<std::string>& frames) {
  const auto waits = std::find_if(frames.rbegin(), frames.rend(), waits_for_ranks);
  if (waits != frames.rend()) return {*waits, true, false};
  const auto gpu = std::find_if(frames.rbegin(), frames.rend(), waits_for_gpu);
  if (gpu != frames.rend()) return {*gpu, false, true};
  const auto found = telling(frames, 1);
  if (found.empty()) return {};
  // Where it is in the kernel its state says.
  const Frame parts = parts_of(found.front());
  if (parts.function.empty() || parts.file == "kernel") return {};
  return {found.front(), false, false};
}

std::map<int, TellingFrame> telling_frames(const StackReport& report) {
  std::map<int, TellingFrame> frames;
  for (const StackGroup& group : report.groups) {
    if (group.kind != Kind::Worker) continue;
    const TellingFrame frame = telling_frame(group.frames);
    if (frame.text.empty() || frames.size() + count(group.ranks) > kMostRanks) continue;
    for (const NumberRange range : group.ranks)
      for (int rank = range.first; rank <= range.last; ++rank)
        frames.emplace(rank, frame);
  }
  // The collective itself, if it runs in another thread and has a name.
  for (const Class& helper : classes_of_helpers(report)) {
    const std::string& name = helper.path.back();
    if (!name.starts_with("gloo::") || name.starts_with("gloo::transport")) continue;
    for (auto& [rank, frame] : frames)
      if (frame.waits_for_ranks && count_common(helper.ranks, {{rank, rank}}) > 0)
        frame.text = name;
  }
  return frames;
}

std::optional<Elsewhere> find_elsewhere(const StackReport& report) {
  const std::vector<Class> classes = classes_of(report);
  std::size_t known = 0;
  for (const Class& each : classes)
    known += each.count;
  std::vector<NumberRange> ranks;
  for (const NodeRanks& node : report.nodes)
    ranks.push_back(node.ranks);
  // Of nodes that gave no answer, too.
  for (const StackNote& note : report.notes)
    ranks.insert(ranks.end(), note.ranks.begin(), note.ranks.end());
  const std::size_t all = std::max(known, count(united(std::move(ranks))));
  if (all < 3 || all > kMostRanks) return std::nullopt;
  Split split = by_waiting(classes);
  if (split.many.empty() || split.few.empty()) {
    split = by_path(classes, all - known);
    if (runs(report, split.many)) return std::nullopt;
    if (split.few.empty() && classes.size() == 1 && classes.front().waits && known == all) {
      const std::vector<Class> helpers = classes_of_helpers(report);
      split = by_helper(helpers, all);
      if (!split.few.empty()) return described(split, all);
    }
  } else if (count_all(split.many) < kMany * (count_all(split.few) + all - known)) {
    return std::nullopt;
  }
  if (split.few.empty()) return std::nullopt;
  return described(split, all);
}

std::string text_of(const Elsewhere& found) {
  std::vector<NumberRange> ranks;
  for (const Elsewhere::Place& place : found.places)
    ranks.insert(ranks.end(), place.ranks.begin(), place.ranks.end());
  constexpr std::size_t kMostRankRanges = 16;
  const auto named = [](std::vector<NumberRange> each) {
    const bool more = each.size() > kMostRankRanges;
    if (more) each.resize(kMostRankRanges);
    return ranks_text(each) + (more ? ",..." : "");
  };
  const std::size_t rest = found.all - found.ranks;
  std::string text = named(united(std::move(ranks))) + (found.ranks == 1 ? " is" : " are") +
                     " somewhere else than " +
                     (found.others == rest
                          ? "the other " + std::to_string(rest)
                          : std::to_string(found.others) + " of the other " + std::to_string(rest));
  for (std::size_t i = 0; i < found.places.size(); ++i) {
    if (i == kMostPlaces) {
      text += "; and " + std::to_string(found.places.size() - i) + " more places";
      break;
    }
    const auto& place = found.places[i];
    text += (i == 0 ? ": " : "; ") + (found.places.size() > 1 ? named(place.ranks) + " " : "") +
            place_text(place);
  }
  return text;
}

}  // namespace drun::stacks
