#include "timeline/clock_notes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/duration_text.hpp"
#include "base/folded_names.hpp"
#include "base/printable.hpp"

namespace drun::timeline {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::size_t kMostAlone = 4;  // clocks that have a sentence each
constexpr std::size_t kMostNames = 12;

std::int64_t wrong_by(const ClockNote& note) {
  return (note.offset_ns < 0 ? -note.offset_ns : note.offset_ns) / kMillisecond;
}

std::string clocks_of(const std::vector<const ClockNote*>& notes) {
  std::vector<std::string> hosts;
  for (const ClockNote* note : notes)
    hosts.push_back(escaped(note->hostname));
  const std::vector<std::string_view> names(hosts.begin(), hosts.end());
  return (hosts.size() == 1 ? "the clock of " : "the clocks of ") + folded_names(names, kMostNames);
}

std::string sentence_of(const ClockNote& note) {
  return clocks_of({&note}) + " was " + describe_duration(wrong_by(note)) +
         (note.offset_ns < 0 ? " ahead" : " behind") + ": its times are corrected";
}

}  // namespace

std::vector<std::string> sentences_of(const std::vector<ClockNote>& notes) {
  std::vector<const ClockNote*> set;
  std::vector<const ClockNote*> alone;
  for (const ClockNote& note : notes) {
    if (!note.compared) {
      alone.push_back(&note);
    } else if (wrong_by(note) > 0) {
      set.push_back(&note);
    }
  }
  std::vector<std::string> sentences;
  if (set.size() <= kMostAlone) {
    for (const ClockNote* note : set)
      sentences.push_back(sentence_of(*note));
  } else {
    const auto worst = std::max_element(
        set.begin(), set.end(),
        [](const ClockNote* a, const ClockNote* b) { return wrong_by(*a) < wrong_by(*b); });
    sentences.push_back(clocks_of(set) + " were wrong, by up to " +
                        describe_duration(wrong_by(**worst)) + " (" + escaped((*worst)->hostname) +
                        "): their times are corrected");
  }
  if (!alone.empty())
    sentences.push_back(clocks_of(alone) +
                        (alone.size() == 1 ? " is taken as it is: nothing in the files compares it "
                                           : " are taken as they are: nothing in the files "
                                             "compares them ") +
                        "with the others");
  return sentences;
}

}  // namespace drun::timeline
