// drun-store's command line, without a store.
#include "store/program/store_options.hpp"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/usage_error.hpp"
#include "support/places.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

StoreOptions options_of(const Words& arguments) {
  const ParsedStore parsed = parse_store_options(arguments);
  EXPECT_TRUE(parsed.options) << parsed.text;
  return parsed.options.value_or(StoreOptions());
}

std::string error_of(const Words& arguments) {
  try {
    (void)parse_store_options(arguments);
  } catch (const cli::UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(StoreOptionsTest, EachFlagIsRead) {
  const StoreOptions options = options_of(
      {"--bind",           "10.0.0.1", "--port",         "7",  "--snapshot",          "file",
       "--max-key",        "1K",       "--max-value",    "2M", "--max-keys",          "5",
       "--max-total",      "1G",       "--max-unread",   "8M", "--max-connections",   "6",
       "--log-level",      "info",     "--forget-ended", "0",  "--snapshot-interval", "2s",
       "--legacy-clients", "2.1",      "--max-job",      "3G"});
  EXPECT_EQ(options.endpoint, (Endpoint{"10.0.0.1", 7}));
  EXPECT_EQ(options.snapshot, "file");
  EXPECT_EQ(options.snapshot_interval, 2s);
  EXPECT_EQ(options.level, log::Level::Info);
  EXPECT_EQ(options.server.forget_ended, 0ms);
  EXPECT_TRUE(options.server.old_clients_are_2_1);
  const Limits& limits = options.server.limits;
  EXPECT_EQ(limits.key_bytes, 1U << 10U);
  EXPECT_EQ(limits.value_bytes, 2U << 20U);
  EXPECT_EQ(limits.keys_per_request, 5U);
  EXPECT_EQ(limits.total_bytes, 1U << 30U);
  EXPECT_EQ(limits.job_bytes, std::size_t{3} << 30U);
  EXPECT_EQ(limits.unread_bytes, 8U << 20U);
  EXPECT_EQ(limits.connections, 6U);
}

// The defaults that --help tells are those of the structs.
TEST(StoreOptionsTest, WhatIsToldAsTheDefaultIsTheDefault) {
  const StoreOptions plain = options_of({});
  const StoreOptions told = options_of({"--port",
                                        "29400",
                                        "--snapshot-interval",
                                        "1s",
                                        "--forget-ended",
                                        "1h",
                                        "--max-key",
                                        "8K",
                                        "--max-value",
                                        "64M",
                                        "--max-keys",
                                        "131072",
                                        "--max-connections",
                                        "1000000",
                                        "--max-total",
                                        "4G",
                                        "--max-unread",
                                        "256M",
                                        "--log-level",
                                        "warning"});
  const std::string manual = parse_store_options({"--print-man"}).text;
  for (const char* fallback :
       {"29400", "1s", "1h", "8K", "64M", "131072", "1000000", "4G", "256M", "warning"})
    EXPECT_THAT(manual, HasSubstr("(default " + std::string(fallback) + ")"));
  EXPECT_EQ(told.endpoint, plain.endpoint);
  EXPECT_EQ(told.snapshot_interval, plain.snapshot_interval);
  EXPECT_EQ(told.level, plain.level);
  EXPECT_EQ(told.server.forget_ended, plain.server.forget_ended);
  EXPECT_EQ(told.server.limits.key_bytes, plain.server.limits.key_bytes);
  EXPECT_EQ(told.server.limits.value_bytes, plain.server.limits.value_bytes);
  EXPECT_EQ(told.server.limits.keys_per_request, plain.server.limits.keys_per_request);
  EXPECT_EQ(told.server.limits.connections, plain.server.limits.connections);
  EXPECT_EQ(told.server.limits.total_bytes, plain.server.limits.total_bytes);
  EXPECT_EQ(told.server.limits.unread_bytes, plain.server.limits.unread_bytes);
}

TEST(StoreOptionsTest, APlainSnapshotIntervalIsInMilliseconds) {
  EXPECT_EQ(options_of({"--snapshot-interval", "20"}).snapshot_interval, 20ms);
  EXPECT_EQ(options_of({"--snapshot-interval", "250ms"}).snapshot_interval, 250ms);
  EXPECT_EQ(options_of({"--snapshot-interval", "1m30s"}).snapshot_interval, 90s);
  EXPECT_EQ(options_of({"--snapshot-interval", "3d"}).snapshot_interval, 24h);
  EXPECT_EQ(error_of({"--snapshot-interval", "0"}),
            "--snapshot-interval '0': expected a time greater than zero");
  EXPECT_EQ(error_of({"--snapshot-interval", "soon"}),
            "--snapshot-interval 'soon': expected a time such as 90 (milliseconds), 5s or 1m30s");
}

TEST(StoreOptionsTest, WhatWasNotGivenMakesRoomForTheLongestValue) {
  const Limits limits = options_of({"--max-value", "1G", "--max-key", "1K"}).server.limits;
  EXPECT_EQ(limits.unread_bytes, (std::size_t{1} << 30U) + 2 * 1024 + 64);
  EXPECT_EQ(limits.request_bytes, (std::size_t{2} << 30U) + 2 * 1024 + 64);
  EXPECT_EQ(limits.reserved_bytes, limits.total_bytes / 4);
}

TEST(StoreOptionsTest, LimitsThatContradictOneAnotherAreRefused) {
  EXPECT_EQ(error_of({"--max-value", "2K", "--max-unread", "2K"}),
            "--max-unread 2048 is too little for values of 2048 bytes (--max-value): a client "
            "could store one and never read it");
  EXPECT_EQ(error_of({"--max-unread", "1M"}),
            "--max-unread 1048576 is too little for values of 67108864 bytes (--max-value): a "
            "client could store one and never read it; give --max-value as well");
  EXPECT_EQ(error_of({"--max-value", "2K", "--max-total", "1K"}),
            "--max-total 1024 is too little for values of 2048 bytes (--max-value): the store "
            "could not hold one");
  EXPECT_EQ(error_of({"--max-value", "2048G"}), "--max-key and --max-value: at most 1024G");
  EXPECT_EQ(error_of({"--max-key", "2048G"}), "--max-key and --max-value: at most 1024G");
}

TEST(StoreOptionsTest, AnAddressMayHaveBracketsAndAScopeButNoPort) {
  EXPECT_EQ(options_of({"--bind", "[::1]"}).endpoint.host, "::1");
  EXPECT_EQ(options_of({"--bind", "fe80::1%eth0"}).endpoint.host, "fe80::1%eth0");
  EXPECT_EQ(error_of({"--bind", "[::1]:7"}),
            "--bind '[::1]:7': expected an address without a port");
  EXPECT_EQ(error_of({"--bind", "host:7"}), "--bind 'host:7': expected an address without a port");
}

// The table in docs/store.md.
TEST(StoreOptionsTest, TheDocumentListsEveryFlag) {
  std::ifstream file(places::source("docs/store.md"));
  std::ostringstream text;
  text << file.rdbuf();
  std::istringstream help(parse_store_options({"--help"}).text);
  std::string line;
  int flags = 0;
  while (std::getline(help, line)) {
    const auto at = line.find("--");
    if (at == std::string::npos || line.find_first_not_of(" ") != at) continue;
    const auto end = line.find("  ", at);
    const std::string flag = line.substr(at, end == std::string::npos ? end : end - at);
    EXPECT_THAT(text.str(), HasSubstr("`" + flag.substr(0, flag.find(' ')))) << flag;
    if (flag.starts_with("--max") || flag.starts_with("--snap") || flag.starts_with("--forget")) {
      EXPECT_THAT(text.str(), HasSubstr("\n| `" + flag + "` |"));
    }
    ++flags;
  }
  EXPECT_GE(flags, 12);
}

}  // namespace
}  // namespace drun::store
