// One of drun's own streams in the output thread: streams of workers take turns at it.
#pragma once

#include <optional>
#include <vector>

#include "launcher/output/line_scheduler.hpp"
#include "launcher/output/output_sink.hpp"
#include "launcher/output/output_stream.hpp"

namespace drun::launcher {

class Console {
 public:
  using Time = LineScheduler::Time;

  explicit Console(int fd);

  [[nodiscard]] Sink& sink() { return sink_; }
  [[nodiscard]] const Sink& sink() const { return sink_; }

  void join(Stream& stream) { scheduler_.join(stream, stream.rank); }
  void leave(Stream& stream) { scheduler_.leave(stream); }
  void end(Stream& stream) { scheduler_.end(stream); }
  [[nodiscard]] bool is_writing(const Stream& stream) const { return writer_ == &stream; }

  // Asks for a turn for those bytes of `stream` for which it has not asked yet.
  void offer(Stream& stream, Time now);
  // The rest of the line that `stream` has not finished has arrived, but is not read yet.
  void hold_back(Stream& stream) { scheduler_.withdraw_partial(stream); }
  // Writes what may be written now; adds the streams that have been written from to `written`.
  // True when the console took something.
  bool pump(Time now, std::vector<Stream*>& written);
  // When pump() has something to do even if nothing else happens.
  [[nodiscard]] std::optional<Time> deadline(Time now) const;

 private:
  void begin_turn(const LineScheduler::Turn& turn);
  bool write_some();
  void end_turn(Time now);

  Sink sink_;
  LineScheduler scheduler_;
  // The turn under way: this much of what the stream had staged when it began.
  Stream* writer_ = nullptr;
  std::size_t quota_ = 0;
  LineState line_after_;
  bool newline_first_ = false;
};

}  // namespace drun::launcher
