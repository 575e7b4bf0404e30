// The output thread: waits for workers' streams to be readable and for consoles to be writable, and
// moves bytes. Everything here runs in that thread, except where said.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/file_descriptor.hpp"
#include "drun/base/mailbox.hpp"
#include "launcher/output_stream.hpp"

namespace drun::launcher {

// From the agent's thread.
struct OutputCommand {
  enum class Kind { Tail, Drain, Message, Resize, Stop };
  Kind kind = Kind::Stop;
  std::uint64_t id = 0;                           // of the answer
  std::vector<Stream*> streams;                   // Tail, Resize
  std::vector<std::unique_ptr<Stream>> released;  // Drain, Stop: the agent forgets them
  std::string text;                               // Message
};

// To the agent's thread, for Tail, Drain and Stop.
struct OutputAnswer {
  std::uint64_t id = 0;
  std::vector<std::string> lines;
};

class OutputLoop {
 public:
  using Time = LineTurns::Time;

  OutputLoop(int standard_output, int standard_error, std::chrono::milliseconds patience);

  // The agent's thread.
  void post(std::unique_ptr<OutputCommand> command) { commands_.post(std::move(command)); }
  [[nodiscard]] std::unique_ptr<OutputAnswer> answer() { return answers_.receive(); }
  [[nodiscard]] int answer_fd() const { return answers_.fd(); }
  [[nodiscard]] Console* console_of(bool error) { return error ? error_ : &consoles_[0]; }
  // From now on the loop sees the stream's events; only the loop touches it.
  void watch(Stream& stream);
  // Changes whenever something could be written.
  [[nodiscard]] std::uint64_t progress() const { return progress_.load(); }

  // The thread. Returns after a Stop, when everything is written or no reader takes anything.
  void run();

 private:
  void take_commands(Time now);
  void execute(OutputCommand& command, Time now);
  void look_at_streams(Time now);
  void read_all(Stream& stream, Time now);
  bool read_once(Stream& stream, Time now);
  void received(Stream& stream, Buffer& buffer, std::size_t count, Time now);
  void stage(Stream& stream, std::string_view bytes, Time now);
  void copy_to_staged(Stream& stream, std::string_view bytes);
  void offer_what_is_left(Stream& stream, Time now);
  void join(Stream& stream);
  void source_ended(Stream& stream, Time now);
  void set_ready(Stream& stream);
  void pump(Console& console, Time now);
  void begin_turn(Console& console, const LineTurns::Grant& grant);
  bool write_some(Console& console, Time now);
  void end_turn(Console& console, Time now);
  void consume(Stream& stream, std::size_t count);
  void forget_written();
  void answer_drained();
  [[nodiscard]] int timeout(Time now) const;
  [[nodiscard]] bool everything_written() const;

  FileDescriptor epoll_;
  Mailbox<OutputCommand> commands_;
  Mailbox<OutputAnswer> answers_;
  std::array<Console, 2> consoles_;
  Console* error_;  // the first console where both are one
  std::chrono::milliseconds patience_;
  std::atomic<std::uint64_t> progress_{0};

  BufferPool pool_;
  std::vector<Stream*> ready_;
  std::vector<std::unique_ptr<Stream>> released_;  // still has something to write
  Stream own_{0};                                  // drun's messages
  std::vector<std::uint64_t> draining_;            // answers owed when released_ is empty
  std::optional<std::uint64_t> stopping_;
  Time last_progress_{};
};

}  // namespace drun::launcher
