// What drun says to etcd's JSON gateway, and what it makes of the answers.
#include "etcd/etcd_messages.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/base64.hpp"

namespace drun::etcd {
namespace {

using nlohmann::json;
using rendezvous::Transaction;
using testing::ElementsAre;

TEST(EtcdMessagesTest, AKeyAndAPrefix) {
  EXPECT_EQ(json::parse(range_request("a", false)), json({{"key", "YQ=="}}));
  EXPECT_EQ(json::parse(range_request("a/", true)),
            json({{"key", base64("a/")}, {"range_end", base64("a0")}}));
  EXPECT_EQ(json::parse(range_request("a\xff", true))["range_end"], base64("b"));
  EXPECT_EQ(json::parse(range_request("", true))["range_end"], base64(std::string(1, '\0')));
}

TEST(EtcdMessagesTest, AWatchBeginsAtARevision) {
  EXPECT_EQ(json::parse(watch_request("a", false, 7)),
            json::parse(R"({"create_request": {"key": "YQ==", "start_revision": "7"}})"));
}

TEST(EtcdMessagesTest, Leases) {
  EXPECT_EQ(json::parse(grant_request(5, 10)), json::parse(R"({"ID": "5", "TTL": "10"})"));
  EXPECT_EQ(json::parse(lease_request(5)), json::parse(R"({"ID": "5"})"));
}

TEST(EtcdMessagesTest, ATransactionHasItsGuardsItsFenceAndItsLeases) {
  Transaction transaction;
  transaction.guards = {{"held", "x"}, {"absent", std::nullopt}};
  transaction.writes = {{"mine", "1", true}, {"ours", "2", false}, {"gone", std::nullopt, false}};
  const json sent = json::parse(commit_request(transaction, {"fence", "9"}, 5, 6));
  const auto compare = [](const char* key, const char* target, const char* name,
                          const char* value) {
    return json({{"key", base64(key)}, {"target", target}, {name, value}, {"result", "EQUAL"}});
  };
  EXPECT_THAT(sent["compare"], ElementsAre(compare("fence", "VALUE", "value", base64("9").c_str()),
                                           compare("held", "VALUE", "value", base64("x").c_str()),
                                           compare("absent", "VERSION", "version", "0")));
  const auto put = [](const char* key, const char* value, const char* lease) {
    return json({{"key", base64(key)}, {"value", base64(value)}, {"lease", lease}});
  };
  ASSERT_EQ(sent["success"].size(), 3U);
  EXPECT_EQ(sent["success"][0]["request_put"], put("mine", "1", "5"));
  EXPECT_EQ(sent["success"][1]["request_put"], put("ours", "2", "6"));
  EXPECT_EQ(sent["success"][2]["request_delete_range"], json({{"key", base64("gone")}}));
  ASSERT_EQ(sent["failure"].size(), 1U);
  EXPECT_EQ(sent["failure"][0]["request_range"], json({{"key", base64("fence")}}));
}

TEST(EtcdMessagesTest, OfSeveralWritesToOneKeyTheLastIsSent) {
  Transaction transaction;
  transaction.writes = {{"a", "1", false}, {"b", "2", false}, {"a", std::nullopt, false}};
  const json sent = json::parse(commit_request(transaction, {"fence", "9"}, 5, 6));
  ASSERT_EQ(sent["success"].size(), 2U);
  EXPECT_EQ(sent["success"][0]["request_put"]["key"], base64("b"));
  EXPECT_EQ(sent["success"][1]["request_delete_range"]["key"], base64("a"));
}

TEST(EtcdMessagesTest, AFenceIsOnlyEverRaised) {
  const json raise = json::parse(fence_request({"fence", "3"}, false, 5));
  EXPECT_EQ(
      raise["compare"][0],
      json::parse(R"({"key": "ZmVuY2U=", "target": "VALUE", "value": "Mw==", "result": "LESS"})"));
  const json create = json::parse(fence_request({"fence", "3"}, true, 5));
  EXPECT_EQ(create["compare"][0]["version"], "0");
  EXPECT_EQ(create["success"][0]["request_put"]["lease"], "5");
}

TEST(EtcdMessagesTest, ReadsLeases) {
  const auto granted = read_grant(R"({"header":{"raft_term":"3"},"ID":"77","TTL":"10"})");
  ASSERT_TRUE(granted);
  EXPECT_EQ(granted->lease, 77);
  EXPECT_EQ(granted->seconds, 10);
  EXPECT_EQ(granted->term, 3);
  const auto kept =
      read_keep_alive(R"({"result":{"header":{"raft_term":"3"},"ID":"77","TTL":"9"}})");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->seconds, 9);
  const auto none = read_keep_alive(R"({"result":{"header":{"raft_term":"3"},"ID":"78"}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->seconds, 0);
  const auto refused = read_keep_alive(
      R"({"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what(), "it says: etcdserver: invalid auth token");
}

TEST(EtcdMessagesTest, ReadsKeysAndTransactions) {
  const auto range = read_range(
      R"({"header":{"revision":"8","raft_term":"2"},"kvs":[{"key":"YQ==","value":"MQ=="},{"key":"Yg=="}],"count":"2"})");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->revision, 8);
  EXPECT_EQ(range->count, 2);
  ASSERT_EQ(range->entries.size(), 2U);
  EXPECT_EQ(range->entries[0].key, "a");
  EXPECT_EQ(range->entries[0].value, "1");
  EXPECT_EQ(range->entries[1].value, "");
  const auto done = read_transaction(R"({"header":{"raft_term":"2"},"succeeded":true})");
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->succeeded);
  const auto refused = read_transaction(
      R"({"header":{},"responses":[{"response_range":{"kvs":[{"key":"YQ==","value":"MQ=="}]}}]})");
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->succeeded);
  EXPECT_EQ(refused->fence, "1");
  const auto gone = read_transaction(R"({"header":{},"responses":[{"response_range":{}}]})");
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->fence, std::nullopt);
}

TEST(EtcdMessagesTest, TheEventsOfOneRevisionBelongTogether) {
  const auto news = read_watch(R"({"result":{"header":{},"events":[
      {"kv":{"key":"YQ==","value":"MQ==","mod_revision":"4"}},
      {"type":"DELETE","kv":{"key":"Yg==","mod_revision":"4"}},
      {"type":"PUT","kv":{"key":"YQ==","value":"Mg==","mod_revision":"5"}}]}})");
  ASSERT_TRUE(news);
  ASSERT_EQ(news->changes.size(), 2U);
  ASSERT_EQ(news->changes[0].size(), 2U);
  EXPECT_EQ(news->changes[0][0].value, "1");
  EXPECT_EQ(news->changes[0][1].value, std::nullopt);
  EXPECT_EQ(news->changes[1][0].value, "2");
}

TEST(EtcdMessagesTest, TheEndOfAWatchHasAReason) {
  const auto compacted =
      read_watch(R"({"result":{"header":{},"canceled":true,"compact_revision":"9"}})");
  ASSERT_TRUE(compacted);
  EXPECT_TRUE(compacted->canceled && compacted->compacted);
  const auto denied = read_watch(
      R"({"result":{"header":{},"canceled":true,"cancel_reason":"etcdserver: permission denied"}})");
  ASSERT_TRUE(denied);
  EXPECT_EQ(denied->reason, "etcdserver: permission denied");
  const auto error =
      read_watch(R"({"error":{"grpc_code":14,"http_code":503,"message":"transport is closing"}})");
  ASSERT_TRUE(error);
  EXPECT_TRUE(error->canceled);
  EXPECT_EQ(error->reason, "transport is closing");
}

TEST(EtcdMessagesTest, RefusalsOfSeveralVersions) {
  const auto old_one =
      read_refusal(R"({"error":"etcdserver: no","message":"etcdserver: no","code":5})");
  ASSERT_TRUE(old_one);
  EXPECT_TRUE(old_one->is(GrpcCode::NotFound));
  EXPECT_EQ(old_one->text, "etcdserver: no");
  const auto new_one =
      read_refusal(R"({"code":14,"message":"etcdserver: no leader","details":[]})");
  ASSERT_TRUE(new_one);
  EXPECT_EQ(new_one->code, 14);
  EXPECT_FALSE(read_refusal("404 page not found"));
  EXPECT_FALSE(read_refusal("[]"));
  EXPECT_FALSE(read_refusal("{}"));
}

TEST(EtcdMessagesTest, WhatDoesNotReadAsExpectedIsAnError) {
  for (const char* body :
       {"", "x", "[]", "{}", "null", R"({"header":7})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"1"},"kvs":{}})", R"({"header":{"revision":"1"},"kvs":[7]})",
        R"({"header":{"revision":"1"},"kvs":[{"key":"!"}]})",
        R"({"header":{"revision":"99999999999999999999"}})"})
    EXPECT_FALSE(read_range(body)) << body;
  for (const char* body :
       {"", "{}", R"({"header":{},"ID":"0","TTL":"5"})", R"({"header":{},"ID":[]})"})
    EXPECT_FALSE(read_grant(body)) << body;
  for (const char* body : {"", "{}", R"({"header":{},"responses":[]})",
                           R"({"header":{},"responses":[{"response_range":{"kvs":7}}]})"})
    EXPECT_FALSE(read_transaction(body)) << body;
  for (const char* line : {"", "{}", R"({"result":{"events":7}})", R"({"result":{"events":[{}]}})"})
    EXPECT_FALSE(read_watch(line)) << line;
  EXPECT_FALSE(read_token(R"({"token":"a\r\nX: y"})"));
  EXPECT_FALSE(read_token("{}"));
}

TEST(EtcdMessagesTest, TextOfTheNetworkIsShortAndPrintable) {
  const auto refusal = read_refusal(R"({"message":"\u001b[31mred\nline"})");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->text, "\\x1b[31mred\\nline");
  EXPECT_LT(shown(std::string(10'000, 'x')).size(), 400U);
}

}  // namespace
}  // namespace drun::etcd
