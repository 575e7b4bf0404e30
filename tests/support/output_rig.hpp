// An Output whose console is two pipes that the test reads, and workers that are only descriptors.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "launcher/output/output.hpp"
#include "support/patience.hpp"
#include "support/pipe.hpp"

namespace drun::test {

// Reads into `text` until `enough(text)`, the end of the stream or the deadline; true: enough.
inline bool read_until(int fd, std::string& text, const std::function<bool()>& enough,
                       std::chrono::milliseconds limit = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!enough()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[65536];
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) return enough();
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return true;
}

// All of `text`, blocking.
inline void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

class OutputRig {
 public:
  OutputRig() {
    ::signal(SIGPIPE, SIG_IGN);
    options.standard_output = out.write.get();
    options.standard_error = err.write.get();
    options.patience = kPatience;
  }
  launcher::Output& start() {
    output = std::make_unique<launcher::Output>(options);
    return *output;
  }
  launcher::WorkerStreams open(int rank) {
    launcher::StreamLabel label;
    label.worker = static_cast<std::uint32_t>(rank);
    label.rank = label.local_rank = rank;
    label.role = "default";
    return output->open(label, output->files()->open(label));
  }
  // Waits until drun's stdout shows exactly this, from the beginning.
  bool shows(std::string_view expected) {
    return read_until(out.read.get(), shown, [&] { return shown.size() >= expected.size(); }) &&
           shown == expected;
  }
  // Ends the output and reads everything that comes, which must fit into the pipe.
  std::string finish() {
    output.reset();
    out.write.reset();
    read_until(out.read.get(), shown, [] { return false; });
    return shown;
  }

  Pipe out;
  Pipe err;
  launcher::OutputOptions options;
  std::unique_ptr<launcher::Output> output;
  std::string shown;
};

}  // namespace drun::test
