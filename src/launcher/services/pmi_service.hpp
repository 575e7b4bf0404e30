// Serves PMI-1 to this node's workers in the agent's event loop: pmi::Node decides, a socket pair
// connects each worker, and the nodes exchange what they have to through the workers' store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "launcher/workers/rank_service.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class PmiService final : public RankService {
 public:
  // Called from the loop, never from inside a call.
  using OnFault = std::function<void(int local_rank, const RankFault& fault)>;

  PmiService(asio::io_context& io, std::string run_id, OnFault on_fault);
  ~PmiService() override;

  void begin(const rendezvous::Assignment& assignment, int workers) override;
  [[nodiscard]] FileDescriptor connect(int local_rank) override;
  [[nodiscard]] std::optional<RankFault> at_end(int local_rank, bool success) override;
  void end() override;

 private:
  class Round;

  asio::io_context& io_;
  const std::string run_id_;
  const OnFault on_fault_;
  std::shared_ptr<Round> round_;  // its pending handlers have weak pointers
};

}  // namespace drun::launcher
