// A thread without signals, for a moment.
#pragma once

#include <signal.h>

namespace drun {

// Blocks every signal of this thread while it lives; the mask before is restored. A thread that is
// started meanwhile never has any: they are left to the others. Around a fork it keeps a signal
// from running the parent's handlers in the child.
class SignalBlock {
 public:
  SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
  ~SignalBlock();

 private:
  sigset_t before_;
};

}  // namespace drun
