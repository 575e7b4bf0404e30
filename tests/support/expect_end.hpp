// How an agent is expected to end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {

// With this code, and with nothing left behind.
inline void expect_end(DrunProcess& process, int code) {
  const Finished finished = process.finish();
  EXPECT_EQ(finished.code, code) << finished.err;
  EXPECT_THAT(finished.survivors, testing::IsEmpty());
}

}  // namespace drun::test
