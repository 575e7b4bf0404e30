#include "base/closest_word.hpp"

#include <algorithm>
#include <cstddef>

namespace drun {
namespace {

constexpr std::size_t kLongest = 64;  // nobody types a longer name

// Insertions, deletions, replacements and swaps of neighbours between two words. By hand: no
// library in the tree counts them.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + same});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// The word that differs in the fewest letters, if they are few.
std::string_view nearest(std::string_view written, const std::vector<std::string>& known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, written.size() / 3) + 1;
  for (const std::string& word : known) {
    const std::size_t d = word.size() > kLongest ? best_distance : distance(written, word);
    if (d >= best_distance) continue;
    best = word;
    best_distance = d;
  }
  return best;
}

}  // namespace

std::string mistyped_word(std::string_view written, const std::vector<std::string>& known) {
  return written.size() > kLongest ? "" : std::string(nearest(written, known));
}

std::string closest_word(std::string_view written, const std::vector<std::string>& known) {
  if (written.size() > kLongest) return "";
  std::string_view akin;  // begins like what was written
  std::size_t longest = 3;
  for (const std::string& word : known) {
    const auto end = std::mismatch(written.begin(), written.end(), word.begin(), word.end());
    const auto common = static_cast<std::size_t>(end.first - written.begin());
    if (common > longest && 2 * common >= written.size()) {
      akin = word;
      longest = common;
    }
  }
  const std::string_view best = nearest(written, known);
  return std::string(best.empty() ? akin : best);
}

}  // namespace drun
