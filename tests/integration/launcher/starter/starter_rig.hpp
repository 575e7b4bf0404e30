// An edge, and what it hears, for tests of it and of the end on the other side.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/hosts/edge_wire.hpp"
#include "launcher/starter/edge.hpp"
#include "support/patience.hpp"

namespace drun::launcher::test {

using drun::test::eventually;
using hosts::Frame;
using hosts::FrameType;

inline constexpr std::string_view kAgent = "agent";    // argv[0]
inline constexpr std::string_view kStart = "--start";  // argv[1]

inline std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

// Which signals this line of /proc/PID/status names, but for the two that are the C library's own.
inline unsigned long long signals_in(const std::string& line) {
  constexpr unsigned long long kOwn = 0b11ULL << 31;
  return std::stoull(line.substr(line.find('\t')), nullptr, 16) & ~kOwn;
}

// Runs the loop until the condition holds.
[[nodiscard]] inline bool run_until(asio::io_context& io, const std::function<bool()>& condition) {
  return eventually([&] {
    io.restart();
    io.run_one_for(std::chrono::milliseconds(1));
    return condition();
  });
}

class HeardEdge {
 public:
  explicit HeardEdge(const std::vector<std::string>& command)
      : edge_(io_, command,
              {[this](const Frame& frame) { frames.push_back(frame); },
               [this](const std::string& machine) { wanted_copies.push_back(machine); },
               [this](const Edge::Ending& end) { endings.push_back(end); }}) {}
  HeardEdge(const HeardEdge&) = delete;
  HeardEdge& operator=(const HeardEdge&) = delete;
  ~HeardEdge() {
    edge_.kill();
    (void)until([this] { return !endings.empty(); });
    io_.restart();
    io_.poll();
  }

  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    return run_until(io_, condition);
  }
  [[nodiscard]] bool until_ended() {
    return until([this] { return !endings.empty(); });
  }
  [[nodiscard]] bool until_frame(FrameType type) {
    return until([this, type] { return find(type) != nullptr; });
  }
  // The first of this type.
  [[nodiscard]] const Frame* find(FrameType type) const {
    for (const Frame& frame : frames)
      if (frame.type == type) return &frame;
    return nullptr;
  }
  // All payloads of this type.
  [[nodiscard]] std::string text(FrameType type) const {
    std::string all;
    for (const Frame& frame : frames)
      if (frame.type == type) all += frame.payload;
    return all;
  }
  [[nodiscard]] bool until_text(FrameType type, const std::string& wanted) {
    return until([&] { return text(type).find(wanted) != std::string::npos; });
  }
  Edge& edge() { return edge_; }

  std::vector<Frame> frames;
  std::vector<Edge::Ending> endings;
  std::vector<std::string> wanted_copies;

 private:
  asio::io_context io_{1};
  Edge edge_;
};

}  // namespace drun::launcher::test
