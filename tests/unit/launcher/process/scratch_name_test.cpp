// Which names in /dev/shm libraries make up for themselves.
#include <gtest/gtest.h>

#include "launcher/process/shared_memory.hpp"

namespace drun::process {
namespace {

TEST(ScratchNameTest, OnlyNamesThatNoProgramChoosesAreScratch) {
  for (const char* name : {"torch_4711_1804289383_0", "nccl-Ab12Cd", "psm_0a1b2c3d",
                           "sem.mp-abcd_x1z", "__KMP_REGISTERED_LIB_4711_1000",
                           "cuda.shm.3e8.1267.1", "ucx_shm_posix_5f2b0c11", "mpich_shar_tmpAbCdEf"})
    EXPECT_TRUE(is_scratch_name(name)) << name;
  for (const char* name :
       {"", ".", "torch_", "torch_model.pt", "torch", "nccl-", "nccl-Ab12C", "nccl-Ab12Cde",
        "nccl-topology.xml", "psm_", "psm_0a1b2c3", "psm_0a1b2c3d4", "psm_checkpt", "sem.mine",
        "sem.mp-", "my_torch_1_2", "checkpoint", "cuda.shm.", "x/nccl-Ab12Cd"})
    EXPECT_FALSE(is_scratch_name(name)) << name;
}

}  // namespace
}  // namespace drun::process
