// Makes every TCPStore call there is, on either client, against a store of any age.
#pragma once

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/client.hpp"
#include "drun/store/errors.hpp"

namespace drun::test {

// What a store can do.
enum class StoreAge { Torch113, Torch26, Torch214, Drun };

// Precondition: an empty store. `connect` gives a Result<Client-like>.
template <typename Connect>
void make_every_call(const Connect& connect, StoreAge age) {
  using namespace std::chrono_literals;
  using store::Errc;
  auto client = connect();
  ASSERT_TRUE(client) << client.error().what();
  ASSERT_EQ(client->version(), age == StoreAge::Torch113 ? store::TcpStoreVersion::Torch1_13
                                                         : store::TcpStoreVersion::Torch2_2);
  EXPECT_EQ(client->local_endpoint().host, "127.0.0.1");

  const std::string binary("a\0\n\xff", 4);
  ASSERT_TRUE(client->set("k", binary));
  EXPECT_EQ(client->get("k").value(), binary);
  EXPECT_EQ(client->try_get("k").value(), binary);
  EXPECT_EQ(client->try_get("missing").value(), std::nullopt);
  EXPECT_EQ(client->add("n", 5).value(), 5);
  EXPECT_EQ(client->add("n", -7).value(), -2);
  EXPECT_EQ(client->compare_set("c", "", "one").value(), "one");
  EXPECT_EQ(client->compare_set("c", "two", "three").value(), "one");
  EXPECT_TRUE(client->check({"k", "n"}).value());
  EXPECT_FALSE(client->check({"k", "missing"}).value());
  EXPECT_TRUE(client->wait({"k", "n", "c"}));
  EXPECT_EQ(client->num_keys().value(), 3);
  EXPECT_TRUE(client->delete_key("c").value());
  EXPECT_FALSE(client->delete_key("c").value());
  EXPECT_EQ(client->announce().value(), 1);
  const std::string large(9 << 20, 'x');
  ASSERT_TRUE(client->set("large", large));
  EXPECT_EQ(client->get("large").value(), large);
  EXPECT_TRUE(client->delete_key("large").value());

  // Another client's key ends a wait.
  auto waiting = connect();
  auto other = connect();
  ASSERT_TRUE(waiting && other);
  ASSERT_TRUE(other->set("late", "x"));
  EXPECT_EQ(waiting->get("late", 60s).value(), "x");

  if (age == StoreAge::Torch113) {
    // What torch 1.13 lacks is refused here, and the connection stays good.
    EXPECT_EQ(client->append("k", "x").error().code(), Errc::Unsupported);
    EXPECT_EQ(client->multi_get({"k"}).error().code(), Errc::Unsupported);
    EXPECT_EQ(client->multi_set({{"k", "v"}}).error().code(), Errc::Unsupported);
    EXPECT_EQ(client->barrier("b", 1).error().code(), Errc::Unsupported);
    EXPECT_EQ(client->queue_len("q").error().code(), Errc::Unsupported);
    EXPECT_TRUE(client->check({"k"}).value());
    // It cannot cancel a wait either.
    EXPECT_EQ(client->wait({"never"}, 20ms).error().code(), Errc::Timeout);
    EXPECT_FALSE(client->connected());
    EXPECT_EQ(client->get("k").error().code(), Errc::Closed);
    return;
  }

  ASSERT_TRUE(client->append("k", "more"));
  EXPECT_EQ(client->get("k").value(), binary + "more");
  ASSERT_TRUE(client->multi_set({{"m1", "1"}, {"m2", ""}}));
  EXPECT_THAT(client->multi_get({"m2", "m1"}).value(), testing::ElementsAre("", "1"));
  EXPECT_THAT(client->multi_get({}).value(), testing::IsEmpty());
  EXPECT_TRUE(client->ping());
  const auto timed_out = client->wait({"never"}, 20ms);
  ASSERT_FALSE(timed_out);
  EXPECT_EQ(timed_out.error().code(), Errc::Timeout);
  EXPECT_EQ(client->get("never", 0ms).error().code(), Errc::Timeout);
  EXPECT_EQ(client->get("n", 0ms).value(), "-2") << "what is there already needs no time";
  EXPECT_TRUE(client->connected()) << "a wait is cancelled";

  if (age >= StoreAge::Torch214) {
    EXPECT_THAT(client->list_keys().value(),
                testing::UnorderedElementsAre("k", "n", "late", "m1", "m2"));
    EXPECT_TRUE(client->barrier("here", 1));
    EXPECT_EQ(client->barrier("there", 2, 20ms).error().code(), Errc::Timeout);
    EXPECT_TRUE(client->barrier("there", 2)) << "a caller that ran out of time stays counted";
  } else {
    EXPECT_EQ(other->list_keys().error().code(), Errc::Closed);
    EXPECT_FALSE(other->connected());
  }
  if (age == StoreAge::Drun) {
    ASSERT_TRUE(client->queue_push("q", "first"));
    ASSERT_TRUE(client->queue_push("q", ""));
    EXPECT_EQ(client->queue_len("q").value(), 2);
    EXPECT_EQ(client->queue_pop("q").value(), "first");
    EXPECT_EQ(client->queue_try_pop("q").value(), "");
    EXPECT_EQ(client->queue_try_pop("q").value(), std::nullopt);
    EXPECT_EQ(client->queue_pop("q", 20ms).error().code(), Errc::Timeout);
    EXPECT_TRUE(client->connected());
  } else {
    const auto length = client->queue_len("q");
    ASSERT_FALSE(length);
    EXPECT_EQ(length.error().code(), Errc::Closed);
    EXPECT_THAT(length.error().what(), testing::HasSubstr("without libuv"));
  }
}

}  // namespace drun::test
