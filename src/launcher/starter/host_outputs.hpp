// What the hosts print, on its way into the one stdout and stderr: their workers' bytes as they
// come, and of drun's own words there what no other host has said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/hosts/own_words.hpp"
#include "launcher/output/flush_policy.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/report/gathered_ranks.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`, which must run dry before this goes.
class HostOutputs {
 public:
  // `times`: drun's own words get the time in front. `tell` gets frames for the hosts: how much of
  // theirs has been taken.
  HostOutputs(asio::io_context& io, OutputRelay& relay, bool times,
              std::function<void(const hosts::Frame&)> tell);
  HostOutputs(const HostOutputs&) = delete;
  HostOutputs& operator=(const HostOutputs&) = delete;

  // The next host, before the relay starts. Throws std::system_error.
  void add_host();
  // Output, ErrorOutput or Words of a host that was added.
  void take(const hosts::Frame& frame);
  // Whether a line of the starter's own is news, as if it was one more host.
  [[nodiscard]] bool is_news(std::string_view line);

  // How far the end of the output has come: first the relay takes what has come from the hosts, of
  // whose ranks the log then tells, and then its reader what the relay has.
  [[nodiscard]] FlushProgress progress();
  // What is left is given up, but not how the job has ended.
  void give_up();

 private:
  // Bytes of a host's.
  struct Shown {
    std::string bytes;
    std::size_t size = 0;  // as they came
  };
  struct Sink {
    Sink(asio::io_context& io, std::uint32_t whose, hosts::FrameType taken_type)
        : into(io), host(whose), taken_frame(taken_type) {}
    asio::posix::stream_descriptor into;
    std::uint32_t host;
    hosts::FrameType taken_frame;
    std::deque<Shown> waiting;  // the first is being written
    std::size_t taken = 0;      // and the host not yet told so
  };
  using Sinks = std::vector<std::unique_ptr<Sink>>;

  void hear(Sink& sink, const std::string& words);
  [[nodiscard]] static bool relay_has(const Sinks& sinks);
  void tell_the_end();
  void close();
  void show(Sink& sink, std::string bytes, std::size_t size);
  void write(Sink& sink);
  void count_taken(Sink& sink, std::size_t size);

  asio::io_context& io_;
  OutputRelay& relay_;
  const bool times_;
  const std::function<void(const hosts::Frame&)> tell_;
  Sinks outputs_;  // by host
  Sinks errors_;
  hosts::SaidWords said_;
  GatheredRanks ranks_;
  std::vector<std::string> reports_;  // to be told at the end
  bool told_ = false;                 // they are
  bool draining_ = false;             // the relay has all
};

}  // namespace drun::launcher
