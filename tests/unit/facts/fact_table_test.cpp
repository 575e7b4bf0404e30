#include "facts/fact_table.hpp"

#include <gtest/gtest.h>

namespace drun::facts {
namespace {

TEST(FactTableTest, ComparesTheVariablesOfLibrariesButNotWhatANodeHasForItself) {
  for (const char* name : {"NCCL_DEBUG", "NCCL_ALGO", "CUDA_LAUNCH_BLOCKING", "GLOO_LOG_LEVEL",
                           "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "FI_PROVIDER"})
    EXPECT_TRUE(is_compared_variable(name)) << name;
  for (const char* name :
       {"HOME", "AWS_SECRET_ACCESS_KEY", "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID",
        "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_TOPO_FILE", "CUDA_HOME", "MY_NCCL_DEBUG", ""})
    EXPECT_FALSE(is_compared_variable(name)) << name;
}

}  // namespace
}  // namespace drun::facts
