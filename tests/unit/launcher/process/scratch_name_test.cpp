// Which names in /dev/shm libraries make up for themselves.
#include <gtest/gtest.h>

#include "launcher/process/shared_memory.hpp"

namespace drun::process {
namespace {

TEST(ScratchNameTest, OnlyNamesThatNoProgramChoosesAreScratch) {
  for (const char* name : {"torch_4711_1804289383_0", "torch_4711_1804289383", "nccl-Ab12Cd",
                           "nccl-abcde1", "psm_0a1b2c3d", "sem.mp-abcd_x1z",
                           "__KMP_REGISTERED_LIB_4711_1000", "__KMP_REGISTERED_LIB_4711",
                           "cuda.shm.3e8.1267.1", "ucx_shm_posix_5f2b0c11", "mpich_shar_tmpAbCdEf"})
    EXPECT_TRUE(is_scratch_name(name)) << name;
  for (const char* name : {"",
                           ".",
                           "torch_",
                           "torch_model.pt",
                           "torch",
                           "nccl-",
                           "nccl-Ab12C",
                           "nccl-Ab12Cde",
                           "nccl-topology.xml",
                           "psm_",
                           "psm_0a1b2c3",
                           "psm_0a1b2c3d4",
                           "psm_checkpt",
                           "sem.mine",
                           "sem.mp-",
                           "my_torch_1_2",
                           "checkpoint",
                           "cuda.shm.",
                           "x/nccl-Ab12Cd",
                           "torch_7_rvw.pt",
                           "torch_7",
                           "torch_7_",
                           "torch_7_8.pt",
                           "torch_7_8_9_10",
                           "torch_7__8",
                           "nccl-config",
                           "nccl-Ab_2Cd",
                           "cuda.shm.a_rvw",
                           "cuda.shm.a",
                           "cuda.shm.1.2",
                           "cuda.shm.1.2.3.4",
                           "cuda.shm.3e8.1267.log",
                           "ucx_shm_posix_a_rvw",
                           "ucx_shm_posix_",
                           "__KMP_REGISTERED_LIB_",
                           "__KMP_REGISTERED_LIB_1_mine",
                           "psm_deadbeef",
                           "sem.mp-training",
                           "mpich_shar_tmpconfig"})
    EXPECT_FALSE(is_scratch_name(name)) << name;
}

}  // namespace
}  // namespace drun::process
