#include "base/folded_names.hpp"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(FoldedNamesTest, NamesThatDifferInANumberShareBrackets) {
  struct Case {
    std::vector<std::string_view> names;
    std::string_view expected;
  };
  const Case cases[] = {
      {{}, ""},
      {{"a"}, "a"},
      {{"node7"}, "node7"},
      {{"node7", "node8"}, "node[7-8]"},
      {{"gpu2", "gpu10", "gpu1", "gpu0", "login"}, "gpu[0-2,10], login"},
      {{"gpu08", "gpu11", "gpu09", "gpu10"}, "gpu[08-11]"},
      {{"gpu098", "gpu099", "gpu100", "gpu1000"}, "gpu[098-100], gpu1000"},
      {{"a1.x9.example", "a2.x9.example", "a3.y.example"}, "a[1-2].x9.example, a3.y.example"},
      {{"r1n2", "r1n3", "r2n2"}, "r1n[2-3], r2n2"},
      {{"1-gpu", "2-gpu"}, "[1-2]-gpu"},
      {{"10.0.0.9", "10.0.0.10"}, "10.0.0.[9-10]"},
      {{"vm", "vm", "vm2", "vm2", "vm3"}, "vm x2, vm2 x2, vm3"},
      {{"pod-12345678901", "pod-12345678902"}, "pod-12345678901, pod-12345678902"},
      {{"a", "b", "c", "d"}, "a, b, c, ..."},
      {{"n1", "n3", "n5", "n7", "n9"}, "n[1,3,5,...]"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(folded_names(c.names, 3), c.expected);
}

}  // namespace
}  // namespace drun
