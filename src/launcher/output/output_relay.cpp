#include "launcher/output/output_relay.hpp"

#include <utility>

#include "base/file_descriptor.hpp"
#include "base/log.hpp"

namespace drun::launcher {

OutputRelay::OutputRelay(int standard_output, int standard_error, Words words)
    : standard_output_(standard_output),
      standard_error_(standard_error),
      thread_({.standard_output = standard_output,
               .standard_error = standard_error,
               .stamped = words.timestamps,
               .quiet = words.quiet}) {}

OutputRelay::~OutputRelay() {
  thread_.stop(std::move(streams_), kReaderPatience);
}

WorkerStreams OutputRelay::open(int node) {
  WorkerStreams ends;
  ends.standard_output = connect(node, false, true);
  if (same_destination(standard_output_, standard_error_)) {
    ends.standard_error = duplicate(ends.standard_output.get(), "make a pipe for an agent");
  } else {
    ends.standard_error = connect(node, true, true);
  }
  return ends;
}

WorkerStreams OutputRelay::open_apart(int node) {
  WorkerStreams ends;
  ends.standard_output = connect(node, false, false);
  ends.standard_error = connect(node, true, false);
  return ends;
}

FileDescriptor OutputRelay::connect(int node, bool error, bool terminal) {
  auto stream = std::make_unique<Stream>(thread_.loop().pool(), 0);
  stream->rank = node;
  stream->is_error = error;
  stream->console = thread_.loop().console(error);
  FileDescriptor end = stream->open_source(error ? standard_error_ : standard_output_, terminal);
  thread_.loop().watch(*stream);
  streams_.push_back(std::move(stream));
  return end;
}

void OutputRelay::start() {
  thread_.start();
}

void OutputRelay::drain(std::chrono::milliseconds limit) {
  (void)thread_.drain(std::exchange(streams_, {}), limit);
}

FlushProgress OutputRelay::flush_progress() const {
  return thread_.flush_progress();
}

bool OutputRelay::finish() {
  thread_.stop(std::move(streams_), std::chrono::milliseconds::zero());
  return !thread_.lost_output();
}

void OutputRelay::message(std::string text) {
  if (text.empty() || text.back() != '\n') text += '\n';
  thread_.post(message_command(std::move(text)));
}

void OutputRelay::log_while(const std::function<void()>& run,
                            const std::function<bool(std::string_view line)>& wanted) {
  // Undone on every way out: what is thrown from here is logged when the relay is gone.
  const std::unique_ptr<OutputRelay, void (*)(OutputRelay*)> redirected(
      this, [](OutputRelay*) { log::redirect({}); });
  log::redirect([this, wanted](std::string line) {
    if (!wanted || wanted(line)) message(std::move(line));
  });
  run();
}

void OutputRelay::resize() {
  thread_.resize(streams_);
}

}  // namespace drun::launcher
