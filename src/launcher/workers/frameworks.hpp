// The variables by which programs that were not written for torchrun find their place: those of
// frameworks, and those of an outer launcher, which speak of drun instead of its workers. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/options/options.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

class FrameworkVariables {
 public:
  enum class Value { Rank, WorldSize, LocalRank, LocalSize, GroupRank, Nodes, PerNode, Ranks };
  struct Known {
    std::string_view name;
    Value value;
  };

  // The arguments must outlive this. `peers`: as WorkerEnvironments'.
  FrameworkVariables(const WorkerSpec& spec, const rendezvous::Assignment& assignment,
                     const std::vector<std::string>& peers);

  // For all workers of this node, "NAME=value"; no name is in both lists.
  [[nodiscard]] std::vector<std::string> alike() const;
  [[nodiscard]] std::vector<std::string> own(int local_rank) const;
  // What a worker must not inherit, because it is true of drun alone.
  [[nodiscard]] bool withheld(std::string_view name) const;

  // The variable of torchrun's with the same value; `name` itself if there is none.
  [[nodiscard]] static std::string_view torchrun_name(std::string_view name);

 private:
  const WorkerSpec& spec_;
  const rendezvous::Assignment& assignment_;
  const std::vector<std::string>& peers_;
  std::vector<Known> wanted_;  // what the workers get, each once
};

}  // namespace drun::launcher
