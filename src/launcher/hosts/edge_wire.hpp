// What the drun that starts a job and the ends of it on other hosts say to one another over the
// standard streams of ssh or another launcher: frames, of which the first is preceded by a mark,
// because the shell there may print something of its own before. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::hosts {

// The only argument of a drun that is such an end.
inline constexpr std::string_view kRemoteEndFlag = "--started-by-drun";

enum class FrameType : std::uint8_t {
  Alive = 1,    // both ways, without a payload: an end that hears nothing for long is alone
  Hello,        // up, first: struct Hello; whose it is the other side knows
  Branch,       // down, first: struct Branch, what hangs on this end, whose own number it tells
  Order,        // down, once: struct Order
  Output,       // up: bytes of the agent's stdout
  ErrorOutput,  // up: of its stderr
  Signal,       // down: a number for the agent
  Failed,       // up, last: why no agent runs there, or runs no more, in words
  Ended,        // up, last: the agent's exit code, as a shell gives it
  Taken,        // down: so many more bytes of Output have been taken
  ErrorTaken,   // of ErrorOutput and Words
  Words,        // up: a text of the agent's own, which it has put among its stderr
  Copying       // up: drun is on its way to this host, which will answer later
};

struct Frame {
  FrameType type = FrameType::Alive;
  std::uint32_t host =
      0;  // the node's number in the list of hosts; ends pass on what is not theirs
  std::string payload{};

  bool operator==(const Frame&) const = default;
};

inline constexpr std::size_t kMostPayload = 16 * 1024 * 1024;
// Of an agent's stdout or stderr, so much may be on its way before the starter has taken it. What
// else a host says waits for no reader.
inline constexpr std::size_t kOutputWindow = 256 * 1024;
// How much is taken before the starter says so.
inline constexpr std::size_t kTakenStep = 64 * 1024;
// Sent before the first frame of an end.
inline constexpr std::string_view kEdgeMark{"\0drun edge 1\0", 13};
// Printed by a host that has no drun and may have this one (--copy-self); behind it stand its kind
// of machine, as `uname -sm` says it, and a line's end. It reads as many bytes as it was told.
inline constexpr std::string_view kCopyMark{"\0drun is not here 1\0", 20};
// A shell that prints more than this before is no drun.
inline constexpr std::size_t kMostNoise = 64 * 1024;

[[nodiscard]] std::string encode(const Frame& frame);

// Bytes in any pieces to frames.
class FrameReader {
 public:
  // `marked`: all up to the mark is thrown away.
  explicit FrameReader(bool marked) : awaits_mark_(marked) {}
  void take(std::string_view bytes);
  // The next whole frame.
  [[nodiscard]] std::optional<Frame> next();
  // The host wants a copy of drun: its kind of machine; once.
  [[nodiscard]] std::optional<std::string> copy_wanted();
  // What has come instead of the mark so far.
  [[nodiscard]] std::string_view noise() const {
    return awaits_mark_ ? bytes_ : std::string_view();
  }
  // This is not our protocol: nothing will come any more.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  std::string bytes_;
  std::size_t at_ = 0;  // what of them has been read
  bool awaits_mark_;
  bool broken_ = false;
};

struct Hello {
  std::string version;  // of the drun there
  // The address by which ssh reached that host, and a port that is free there. Empty: not known.
  std::string address;
  std::string port;
  std::string host_name;
  std::string no_tls{};  // why agents there can have no token; empty: they can

  bool operator==(const Hello&) const = default;
};

// One host of the list.
struct Target {
  std::uint32_t host = 0;
  std::string name;

  bool operator==(const Target&) const = default;
};

// What an end starts further ends with.
struct Branch {
  std::vector<std::string> launcher;  // words
  std::string drun;                   // the starter's file
  std::size_t fan_out = 1;
  bool copy_self = false;       // to hosts that have no drun
  std::vector<Target> targets;  // may be empty

  bool operator==(const Branch&) const = default;
};

struct Order {
  std::string directory;
  std::string grace;  // milliseconds that the agent has to end in once its starter is gone
  std::vector<std::string> arguments;    // of the agent, argv[0] included
  std::vector<std::string> environment;  // "NAME=value", over what the login there has

  bool operator==(const Order&) const = default;
};

// None of the texts holds a zero byte: neither arguments nor variables can.
[[nodiscard]] std::string pack(const Hello& hello);
[[nodiscard]] std::string pack(const Branch& branch);
[[nodiscard]] std::string pack(const Order& order);
[[nodiscard]] Result<Hello> unpack_hello(std::string_view payload);
[[nodiscard]] Result<Branch> unpack_branch(std::string_view payload);
[[nodiscard]] Result<Order> unpack_order(std::string_view payload);
// Of Ended; what is no exit code is that of a failure.
[[nodiscard]] int unpack_exit_code(std::string_view payload);

// The targets in at most `fan_out` groups in their order, as even as possible. The first of each is
// started from here, and starts the others of its group.
[[nodiscard]] std::vector<std::vector<Target>> branches_of(const std::vector<Target>& targets,
                                                           std::size_t fan_out);

}  // namespace drun::launcher::hosts
