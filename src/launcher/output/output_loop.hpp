// The output thread: waits for workers' streams to be readable and for consoles to be writable, and
// moves bytes. Everything here runs in that thread, unless a comment names another.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/mailbox.hpp"
#include "launcher/output/output_console.hpp"
#include "launcher/output/output_pace.hpp"
#include "launcher/output/output_stream.hpp"

namespace drun::launcher {

// A stream with this many bytes staged for its console is not read.
constexpr std::size_t kReadAhead = 64 * 1024;

// From the agent's thread.
struct OutputCommand {
  enum class Kind { Tail, Drain, Message, Resize, Stop };
  Kind kind = Kind::Stop;
  std::uint64_t id = 0;                           // of the answer
  std::vector<Stream*> streams;                   // Tail, Resize
  std::vector<std::unique_ptr<Stream>> released;  // Drain, Stop: the agent forgets them
  std::string text;                               // Message
  std::chrono::milliseconds patience{};           // Stop: for a reader that takes nothing
};

// To the agent's thread, for all but Message.
struct OutputAnswer {
  std::uint64_t id = 0;
  std::vector<std::string> lines;
};

// As in OutputOptions.
struct OutputLoopOptions {
  int standard_output = 1;
  int standard_error = 2;
  std::chrono::milliseconds fold_window{};
  bool stamped = false;
  bool quiet = false;
  // Around each of drun's own texts, which then has no time; empty: nothing.
  std::string words_begin{};
  std::string words_end{};
};

class OutputLoop {
 public:
  using Time = LineScheduler::Time;

  explicit OutputLoop(const OutputLoopOptions& options);

  // ---- the agent's thread ----
  void post(std::unique_ptr<OutputCommand> command) { commands_.post(std::move(command)); }
  [[nodiscard]] std::unique_ptr<OutputAnswer> answer() { return answers_.receive(); }
  [[nodiscard]] int answer_fd() const { return answers_.fd(); }
  [[nodiscard]] Console* console(bool error) { return &consoles_[error ? error_ : 0]; }
  [[nodiscard]] Folding* folding(bool error) { return &foldings_[error ? error_ : 0]; }
  [[nodiscard]] BufferPool& pool() { return pool_; }
  // From now on the loop sees the stream's events; only the loop touches it.
  void watch(Stream& stream);
  // True when output was lost because it could not be written (a full disk), not because its reader
  // has left.
  [[nodiscard]] bool lost_output() const { return lost_output_.load(); }
  // The message at the end about logs that could not be written; empty: all were.
  [[nodiscard]] std::string lost_logs() const;
  // Changes whenever drun's stdout (`error`: its stderr) takes bytes, or its reader takes some of
  // them.
  [[nodiscard]] std::uint64_t taken(bool error) const;
  // The id of the last Drain after which everything was written; 0: there was none.
  [[nodiscard]] std::uint64_t drained() const { return drained_.load(); }
  // While a Drain has something to write: which of the two streams it is for.
  [[nodiscard]] std::array<bool, 2> unwritten() const { return unwritten_.load(); }

  // ---- the output thread ----
  // Returns after a Stop, when everything is written or no reader takes anything.
  void run();

 private:
  void execute(OutputCommand& command, Time now);
  void release(std::unique_ptr<Stream> stream, Time now);
  void forget_written();
  void answer(std::uint64_t id, std::vector<std::string> lines);

  void attach_arrivals();
  void join(Stream& stream);
  void set_ready(Stream& stream);
  void look_at_streams(Time now);
  void read_all(Stream& stream, Time now);
  bool read_once(Stream& stream, Time now);
  std::optional<std::size_t> read_raw(Stream& stream);
  std::optional<std::size_t> read_lines(Stream& stream, Time now);
  void take_note(Stream& stream, std::string_view bytes);
  void look_at_files(Stream& stream, Time now);
  void lose_log(const std::string& path, int error, Time now);
  void source_ended(Stream& stream, Time now);
  [[nodiscard]] bool waits_for_folded(const Stream& stream) const;
  [[nodiscard]] bool ahead(const Stream& stream) const;

  void say(std::string_view text, Time now);
  void flush_folds(Time now);
  void pump(Time now);
  void tell_what_is_gone(Time now);
  [[nodiscard]] int timeout(Time now) const;
  [[nodiscard]] bool everything_written() const;
  void note_unwritten();

  FileDescriptor epoll_;
  Mailbox<OutputCommand> commands_;
  Mailbox<OutputAnswer> answers_;
  BufferPool pool_;
  std::array<Console, 2> consoles_;
  std::atomic<Stream*> arrivals_{nullptr};  // watched, not joined; the latest first
  std::size_t error_;  // index of stderr's console: 0 if stdout and stderr are one
  std::array<Folding, 2> foldings_;
  std::chrono::milliseconds patience_{};  // of the Stop
  std::array<std::atomic<std::uint64_t>, 2> progress_{};
  std::atomic<std::uint64_t> drained_{0};
  std::atomic<std::array<bool, 2>> unwritten_{};

  Stream own_;  // drun's messages
  bool stamped_;
  const std::string words_begin_;
  const std::string words_end_;
  bool told_reader_left_;
  std::unique_ptr<char[]> scratch_;
  ReadPace pace_;
  std::size_t longest_read_ = 0;  // since the loop last waited
  std::size_t read_ = 0;          // all of it
  std::vector<Stream*> ready_;
  std::vector<Stream*> written_;                   // of one pump
  std::vector<std::unique_ptr<Stream>> released_;  // still have something to write
  std::vector<std::uint64_t> draining_;            // answers owed when released_ is empty
  std::optional<std::uint64_t> stopping_;
  Time last_progress_{};
  int grown_pipes_ = 0;
  std::atomic<bool> lost_output_{false};
  std::string first_lost_log_;  // fixed when the count is no longer 0
  std::atomic<unsigned> lost_logs_{0};
};

}  // namespace drun::launcher
