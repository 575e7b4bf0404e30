// drun's own exit codes, beside the workers'.
#pragma once

namespace drun {

inline constexpr int kUsageError = 2;    // the command line is wrong
inline constexpr int kDrunFailed = 125;  // the store, the rendezvous, drun itself
inline constexpr int kTimeLimit = 124;   // as timeout(1)

}  // namespace drun
