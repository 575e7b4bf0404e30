#include "launcher/starter/host_outputs.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include "base/log.hpp"
#include "base/split.hpp"
#include "launcher/output/output_lines.hpp"

namespace drun::launcher {
namespace {

// Each line with the time at its front, as this process says its own.
std::string with_times(std::string_view text) {
  const std::string time = time_stamp(std::chrono::system_clock::now());
  std::string result;
  while (!text.empty())
    result += time + std::string(take_until(text, '\n')) + "\n";
  return result;
}

}  // namespace

HostOutputs::HostOutputs(asio::io_context& io, OutputRelay& relay, bool times,
                         std::function<void(const hosts::Frame&)> tell)
    : io_(io), relay_(relay), times_(times), tell_(std::move(tell)) {}

void HostOutputs::add_host() {
  const auto host = static_cast<std::uint32_t>(outputs_.size());
  WorkerStreams streams = relay_.open_apart(static_cast<int>(host));
  outputs_.push_back(std::make_unique<Sink>(io_, host, hosts::FrameType::Taken));
  outputs_.back()->into.assign(streams.standard_output.release());
  errors_.push_back(std::make_unique<Sink>(io_, host, hosts::FrameType::ErrorTaken));
  errors_.back()->into.assign(streams.standard_error.release());
}

void HostOutputs::take(const hosts::Frame& frame) {
  const bool output = frame.type == hosts::FrameType::Output;
  Sink& sink = *(output ? outputs_ : errors_)[frame.host];
  if (frame.type == hosts::FrameType::Words) return hear(sink, frame.payload);
  show(sink, frame.payload, frame.payload.size());
}

// They stand among what the workers print. What another host has said already counts as shown.
void HostOutputs::hear(Sink& sink, const std::string& words) {
  if (const auto ranks = unpacked_ranks(words)) {
    ranks_.add(*ranks);
    return count_taken(sink, words.size());
  }
  if (auto report = said_last(words)) {
    if (said_.is_news(sink.host, *report)) reports_.push_back(std::move(*report));
    return count_taken(sink, words.size());
  }
  if (!said_.is_news(sink.host, words)) return count_taken(sink, words.size());
  show(sink, times_ ? with_times(words) : words, words.size());
}

bool HostOutputs::is_news(std::string_view line) {
  return said_.is_news(static_cast<std::uint32_t>(outputs_.size()), line);
}

void HostOutputs::show(Sink& sink, std::string bytes, std::size_t size) {
  if (!sink.into.is_open()) return;
  sink.waiting.push_back({std::move(bytes), size});
  if (sink.waiting.size() == 1) write(sink);
}

void HostOutputs::write(Sink& sink) {
  const auto bytes = asio::buffer(sink.waiting.front().bytes);
  asio::async_write(sink.into, bytes, [this, &sink](asio::error_code, std::size_t) {
    if (!sink.into.is_open()) return sink.waiting.clear();
    count_taken(sink, sink.waiting.front().size);
    sink.waiting.pop_front();
    if (!sink.waiting.empty()) write(sink);
  });
}

// The host sends on what the relay has taken, or does not want any more.
void HostOutputs::count_taken(Sink& sink, std::size_t size) {
  sink.taken += size;
  if (sink.taken < hosts::kTakenStep) return;
  tell_({sink.taken_frame, sink.host, std::to_string(std::exchange(sink.taken, 0))});
}

FlushProgress HostOutputs::progress() {
  const auto any_waits = [](const Sinks& sinks) {
    return std::any_of(sinks.begin(), sinks.end(),
                       [](const auto& sink) { return !sink->waiting.empty(); });
  };
  const bool output_waits = any_waits(outputs_);
  const bool error_waits = any_waits(errors_);
  // A reader of stdout that takes nothing keeps nobody from learning why the job has failed.
  if (output_waits && !error_waits && relay_has(errors_)) tell_the_end();
  if (!output_waits && !error_waits && !std::exchange(draining_, true)) {
    close();
    relay_.drain(FlushPolicy::kInterval);
    tell_the_end();
  }
  FlushProgress progress = relay_.flush_progress();
  if (draining_) return progress;
  progress.all = false;
  progress.waits_for_output |= output_waits;
  progress.waits_for_error |= error_waits;
  return progress;
}

// Nothing of it is left in their pipes.
bool HostOutputs::relay_has(const Sinks& sinks) {
  return std::none_of(sinks.begin(), sinks.end(), [](const auto& sink) {
    int unread = 0;
    return sink->into.is_open() && ::ioctl(sink->into.native_handle(), FIONREAD, &unread) == 0 &&
           unread > 0;
  });
}

// Behind the report of the host that tells how the job has ended; once.
void HostOutputs::tell_the_end() {
  if (std::exchange(told_, true)) return;
  for (std::string& report : std::exchange(reports_, {}))
    relay_.message(std::move(report));
  if (const std::string text = ranks_.stopped(); !text.empty()) log::info("{}", text);
  if (const std::string text = ranks_.succeeded(); !text.empty()) log::info("{}", text);
}

void HostOutputs::give_up() {
  tell_the_end();
  close();
}

void HostOutputs::close() {
  for (const Sinks* sinks : {&outputs_, &errors_}) {
    for (const auto& sink : *sinks) {
      asio::error_code ignored;
      sink->into.close(ignored);
    }
  }
}

}  // namespace drun::launcher
