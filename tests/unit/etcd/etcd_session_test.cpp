#include "etcd/etcd_session.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::etcd {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(FenceTest, EachSessionHasAKeyAndEachGenerationAValueThatComparesAsItDoes) {
  EXPECT_EQ(fence_of(0x0102ABCD, 9).key, "drun/%session/000000000102abcd");
  EXPECT_LT(fence_of(5, 9).value, fence_of(5, 10).value);
  EXPECT_EQ(fence_of(5, 9).value.size(), fence_of(5, 4'000'000'000).value.size());
  EXPECT_EQ(fence_of(5, 9).key, fence_of(5, 10).key);
}

TEST(FenceTest, OnlyWhatItHasWrittenIsAGeneration) {
  for (const std::uint64_t generation : {std::uint64_t{1}, std::uint64_t{4'294'967'294}})
    EXPECT_EQ(generation_in(fence_of(5, generation).value), generation);
  for (const char* other : {"", "1", "00000000000000000001 ", "0000000000000000000x",
                            "00000000004294967295", "18446744073709551616"})
    EXPECT_EQ(generation_in(other), std::nullopt) << other;
}

TEST(FarewellTest, IsARequestThatIsLongerThanWhatEtcdReadsAtOnce) {
  const std::string bytes = farewell_bytes(5, {"e1", 2379}, "abc");
  EXPECT_THAT(bytes, StartsWith("POST /v3/lease/revoke HTTP/1.1\r\nHost: e1:2379\r\n"));
  EXPECT_THAT(bytes, HasSubstr("\r\nAuthorization: abc\r\n"));
  EXPECT_THAT(bytes, EndsWith("\r\n\r\n"));
  EXPECT_GE(bytes.size(), 8'192U);
  EXPECT_THAT(farewell_bytes(5, {"e1", 2379}, ""), Not(HasSubstr("Authorization")));
}

}  // namespace
}  // namespace drun::etcd
