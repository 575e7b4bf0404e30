// Looks at this machine and at what the program will find on it: files, limits, no other program.
// Takes milliseconds if the file systems answer; so ask it in a thread for files that may hang.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/tcp_calls.hpp"
#include "facts/sheet.hpp"

namespace drun::facts {

struct FactsQuery {
  std::string root;  // in front of the paths under /proc, /sys, /dev and /etc: "" for this machine
  std::string interpreter;               // the Python that runs the program; empty: none is known
  std::vector<std::string> files;        // that make up the program
  std::vector<std::string> environment;  // the workers', "NAME=value"
  std::string address;                   // or name, by which others reach this node; may be empty
  std::string salt;                      // the same on all nodes of a job
  std::optional<rlimit> open_files;      // the workers' limit, if it is not this process's
  // What a name means; may ask a name server.
  std::function<std::vector<std::string>(const std::string& name)> look_up = drun::look_up;
};

[[nodiscard]] Sheet gather(const FactsQuery& question);

// Of the interface with this address; 0: not known. No file is asked.
[[nodiscard]] int mtu_at(const std::string& address);

// ---- parts of it ----

// torch, CUDA and NCCL where this Python (or, if it is empty, any program) would find them.
void gather_python(const FactsQuery& question, Sheet& sheet);

}  // namespace drun::facts
