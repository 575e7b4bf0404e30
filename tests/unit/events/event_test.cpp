#include "drun/events/event.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace drun::events {
namespace {

using testing::HasSubstr;

// 2026-11-28T14:30:00.123456789Z
constexpr std::int64_t kTime = 1'795'876'200'123'456'789;

// With a value of its own in every field.
Event full(Kind kind) {
  Event event;
  event.kind = kind;
  event.time_ns = kTime;
  std::int64_t number = 0;
  for (const auto fields : {common_fields(), info_of(kind).fields}) {
    for (const Field& field : fields) {
      if (const auto* integer = std::get_if<std::int64_t Event::*>(&field.member)) {
        event.*(*integer) = ++number;
      } else {
        event.*std::get<std::string Event::*>(field.member) = "<" + std::string(field.name) + ">";
      }
    }
  }
  return event;
}

TEST(EventTest, TheLinesOfAllKindsStayAsTheyAre) {
  std::string lines;
  for (const KindInfo& info : every_kind())
    lines += to_json(full(info.kind)) + "\n";
  test::expect_golden("events/lines.jsonl", lines);
}

TEST(EventTest, EveryLineIsReadAsItWasMeant) {
  for (const KindInfo& info : every_kind()) {
    const Event event = full(info.kind);
    const auto read = parse_event(to_json(event));
    ASSERT_TRUE(read) << info.name << ": " << read.error().what();
    EXPECT_EQ(*read, event) << info.name;
    EXPECT_EQ(kind_of(info.name), info.kind);
  }
  EXPECT_EQ(kind_of("nothing"), std::nullopt);
}

TEST(EventTest, NoTextMakesALineTooLongOrActsOnATerminal) {
  Event event = full(Kind::NodeRefused);
  std::string chinese;
  while (chinese.size() < 2'000)
    chinese += "\xe4\xb8\xad";
  for (const std::string& text :
       {std::string(10'000, 'x'), std::string(10'000, '"'), chinese,
        std::string("\x1b[2J\r\n\0\x9b", 8), std::string("\xff\xfe half \xe4\xb8")}) {
    event.reason = event.peer = event.peer_host = event.run_id = event.hostname = event.node = text;
    const std::string line = to_json(event);
    EXPECT_LT(line.size(), kLongestLine);
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    const auto read = parse_event(line);
    ASSERT_TRUE(read);
    EXPECT_LE(read->reason.size(), kLongestText);
    EXPECT_FALSE(read->reason.empty());
  }
}

TEST(EventTest, TimeIsThatOfRfc3339) {
  EXPECT_EQ(rfc3339(kTime), "2026-11-28T14:30:00.123456789Z");
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
  const auto leap = parse_event(R"({"event":"warning","time":"2028-02-29T23:59:59.000000001Z"})");
  ASSERT_TRUE(leap);
  EXPECT_EQ(rfc3339(leap->time_ns), "2028-02-29T23:59:59.000000001Z");
}

TEST(EventTest, WhatIsUnknownIsIgnoredAndWhatIsMissingIsNothing) {
  const auto read = parse_event(R"({"event":"signal","signal":15,"new":[1],"world_size":"no"})");
  ASSERT_TRUE(read) << read.error().what();
  EXPECT_EQ(read->signal, 15);
  EXPECT_EQ(read->group_rank, -1);
  EXPECT_EQ(read->reason, "");
}

TEST(EventTest, AnotherLineIsAnError) {
  for (const char* line :
       {"", "null", "[]", "{", R"({"event":1})", R"({"event":"nothing"})", R"({"name":"warning"})",
        R"({"event":"signal","signal":"15"})", R"({"event":"signal","signal":1.5})",
        R"({"event":"signal","signal":18446744073709551615})", R"({"event":"warning","reason":7})",
        R"({"event":"warning","time":"yesterday"})",
        R"({"event":"warning","time":"2027-02-29T00:00:00.000000000Z"})",
        R"({"event":"warning","time":7})"}) {
    const auto read = parse_event(line);
    ASSERT_FALSE(read) << line;
    EXPECT_THAT(read.error().what(), HasSubstr("no event of drun's"));
  }
}

std::string names_of(std::span<const Field> fields) {
  std::string text;
  for (const Field& field : fields)
    text += (text.empty() ? "`" : ", `") + std::string(field.name) + "`";
  return text;
}

// The tables of docs/events.md.
std::string tables() {
  std::string text = "\n| `event` | Fields of its own | Meaning |\n|---|---|---|\n";
  std::vector<Field> fields(common_fields().begin(), common_fields().end());
  for (const KindInfo& info : every_kind()) {
    text += "| `" + std::string(info.name) + "` | " + names_of(info.fields) + " | " +
            std::string(info.meaning) + " |\n";
    for (const Field& field : info.fields) {
      const bool known = std::any_of(fields.begin(), fields.end(),
                                     [&](const Field& other) { return other.name == field.name; });
      if (!known) fields.push_back(field);
    }
  }
  text += "\nEvery line has " + names_of(common_fields()) + ".\n";
  text += "\n| Field | Type | Meaning |\n|---|---|---|\n";
  for (const Field& field : fields)
    text += "| `" + std::string(field.name) + "` | " +
            (field.member.index() == 0 ? "number" : "text") + " | " + std::string(field.meaning) +
            " |\n";
  return text + "\n";
}

TEST(EventTest, TheDocumentHasTheTables) {
  const std::string path = places::source("docs/events.md");
  std::ifstream file(path);
  std::ostringstream read;
  read << file.rdbuf();
  std::string document = read.str();
  const std::string first = "<!-- events -->\n";
  const auto begin = document.find(first) + first.size();
  const auto end = document.find("<!-- end of events -->");
  ASSERT_LE(begin, end);
  if (std::getenv("DRUN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << document.replace(begin, end - begin, tables());
    return;
  }
  EXPECT_EQ(document.substr(begin, end - begin), tables()) << "DRUN_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace
}  // namespace drun::events
