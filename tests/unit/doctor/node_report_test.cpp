#include "doctor/node_report.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::doctor {
namespace {

TEST(NodeReportTest, ComesBackAsItWas) {
  NodeReport report;
  report.host = "node7";
  report.sheet = {{"kernel", "6"}};
  report.checks = {passed("disk", "fine")};
  report.links = {{1, "", 5, 6, 1500, 9000}, {2, "refused", 0, 0, 0, 0}};
  report.clock_us = -5;
  auto back = decode_report(encode(report));
  ASSERT_TRUE(back) << back.error().what();
  EXPECT_EQ(*back, report);
  report.clock_us.reset();
  back = decode_report(encode(report));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, report);
}

TEST(NodeReportTest, RefusesWhatIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"host":"a","sheet":"{}","checks":"[]"})",
                           R"({"host":"a","sheet":"{}","checks":"[]","links":[1]})",
                           R"({"host":"a","sheet":"x","checks":"[]","links":[]})"})
    EXPECT_FALSE(decode_report(text)) << text;
  EXPECT_FALSE(decode_report(std::string(2'000'000, ' ')));
}

}  // namespace
}  // namespace drun::doctor
