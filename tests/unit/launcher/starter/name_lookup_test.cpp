// Of addresses only: no name server is asked.
#include "launcher/starter/name_lookup.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(NameLookupTest, AnAddressOfThisMachineOnlyLeadsNobodyElse) {
  EXPECT_FALSE(leads_others("127.0.0.1"));
  EXPECT_FALSE(leads_others("127.9.9.9"));
  EXPECT_FALSE(leads_others("::1"));
}

TEST(NameLookupTest, AnyOtherAddressMay) {
  EXPECT_TRUE(leads_others("192.0.2.1"));
  EXPECT_TRUE(leads_others("2001:db8::1"));
}

}  // namespace
}  // namespace drun::launcher
