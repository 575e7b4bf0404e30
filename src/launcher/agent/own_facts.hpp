// What this node says of its machine, gathered beside the agent's loop.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/file_desk.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class OwnFacts {
 public:
  // `open_files`: the limit of the workers. `ready` gets the sheet, from the loop; it is called
  // once, also if the file systems hang.
  OwnFacts(asio::io_context& io, const Options& options, const std::optional<rlimit>& open_files,
           std::function<void(std::string sheet)> ready);

  // Does nothing the second time, nor for a job whose facts are not compared.
  void gather(const NodeIdentity& node);
  // Nobody is told anything any more.
  void cancel();

 private:
  asio::io_context& io_;
  const Options& options_;
  const std::optional<rlimit> open_files_;
  const std::function<void(std::string sheet)> ready_;
  std::unique_ptr<FileDesk> desk_;  // null: not begun
};

}  // namespace drun::launcher
