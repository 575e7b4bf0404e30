#include "base/signal_block.hpp"

namespace drun {

SignalBlock::SignalBlock() : before_() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalBlock::~SignalBlock() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace drun
