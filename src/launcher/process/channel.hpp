// One end of the stream socket between the agent and its guardian: framed messages (wire.hpp) with
// descriptors. Nothing here ever blocks: what the socket does not take now waits in memory.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/process/wire.hpp"

namespace drun::process {

struct GuardianFrame {
  wire::Type type = wire::Type::Hello;
  std::string_view payload;  // until the next call of fill() or next()
  std::vector<FileDescriptor> descriptors;
  // The descriptors were lost on the way: this process may not open any more.
  bool descriptors_missing = false;
};

class Channel {
 public:
  // A connected AF_UNIX stream socket.
  explicit Channel(FileDescriptor socket);

  [[nodiscard]] int fd() const { return socket_.get(); }

  // Queues a message; its first byte takes the descriptors along.
  void send(std::string message, std::vector<FileDescriptor> descriptors = {});
  // Writes what the socket takes. False when the other end is gone.
  bool flush();
  // Something is queued: call flush() when the socket is writable.
  [[nodiscard]] bool wants_write() const { return !output_.empty(); }

  enum class Fill { More, Empty, Closed };
  // Reads once. At most one set of descriptors arrives with it, so a caller that takes the messages
  // out after each call holds few descriptors. Closed: the other end is gone.
  Fill fill();
  // The next complete message.
  std::optional<GuardianFrame> next();

 private:
  void make_room();

  struct Outgoing {
    std::string bytes;
    std::vector<FileDescriptor> descriptors;
  };
  struct DescriptorSet {
    std::vector<FileDescriptor> descriptors;
  };

  FileDescriptor socket_;
  std::deque<Outgoing> output_;
  std::size_t written_ = 0;        // of the first message in output_
  std::unique_ptr<char[]> input_;  // not zeroed: a page that no message fills costs nothing
  std::size_t input_size_ = 0;
  std::size_t input_begin_ = 0;  // [input_begin_, input_end_) is unread
  std::size_t input_end_ = 0;
  std::deque<DescriptorSet> received_;
};

}  // namespace drun::process
