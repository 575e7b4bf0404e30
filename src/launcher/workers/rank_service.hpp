// What an agent serves to its workers besides their streams, through a descriptor of each: PMI-1,
// for MPI programs. Implemented by the agent; tests put a fake in its place.
#pragma once

#include <optional>
#include <string>

#include "base/file_descriptor.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

// A worker has failed by what it said to the service, whatever it does afterwards.
struct RankFault {
  int exit_code = 1;            // 1 to 255
  std::string cause;            // "aborted the job with code 7": printable
  bool hangs = false;           // it does nothing any more
  bool for_good = false;        // no restart, whatever the policy says
  bool with_others = false;     // those of other nodes fail in the same moment
  rendezvous::HangClue clue{};  // of several that hang in the same moment, who failed first
};

class RankService {
 public:
  RankService() = default;
  RankService(const RankService&) = delete;
  RankService& operator=(const RankService&) = delete;
  virtual ~RankService() = default;

  // A round begins, whose workers connect() is called for.
  virtual void begin(const rendezvous::Assignment& assignment, int workers) = 0;
  // The worker's end of its connection. Throws std::system_error.
  [[nodiscard]] virtual FileDescriptor connect(int local_rank) = 0;
  // This worker has ended by itself: what makes that a failure, as far as it is not known yet.
  // `success`: it ended with 0.
  [[nodiscard]] virtual std::optional<RankFault> at_end(int local_rank, bool success) = 0;
  // No worker of the round is left, or none is served any more.
  virtual void end() = 0;
};

}  // namespace drun::launcher
