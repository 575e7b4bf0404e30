// --events while an agent lives: hands events to a thread that writes them. Nothing here waits for
// it: what it cannot take is counted, and told.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "drun/events/event.hpp"
#include "launcher/event_sinks/event_sink.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`.
class EventLog {
 public:
  // So many wait for the thread; more are lost.
  static constexpr std::size_t kMostWaiting = 4'096;
  // At the end: so long without a line that was written.
  static constexpr std::chrono::seconds kEndLimit{5};

  EventLog(asio::io_context& io, std::unique_ptr<EventSink> sink);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void tell(events::Event event);
  // Calls `over`, once, when all are written and the sink has ended, or when that takes too long;
  // perhaps at once.
  void finish(std::function<void()> over);
  // Waits for nothing any more; `over` is called.
  void give_up();
  [[nodiscard]] std::int64_t lost() const { return lost_; }

 private:
  using Lines = std::vector<std::string>;

  void write();
  void on_written(const SinkResult& result);
  void end_sink();
  void on_limit();
  void drop();
  void lose(std::size_t events, const std::string& why);
  void end();

  FileDesk desk_;
  DeadlineTimer limit_;
  const std::shared_ptr<EventSink> sink_;  // the thread's own while `busy_`
  std::vector<events::Event> waiting_;
  std::shared_ptr<const Lines> lines_;  // at the thread
  std::size_t next_ = 0;                // of them
  bool tells_loss_ = false;             // the first of them does
  bool busy_ = false;
  bool hung_ = false;
  bool dropped_ = false;  // what was left at the end
  bool sink_ended_ = false;
  std::int64_t lost_ = 0;
  std::int64_t untold_ = 0;  // of these, in the lines
  std::string why_;          // the last that was said
  events::Event latest_;     // whose place and time a line about a loss gets
  std::function<void()> over_;
};

}  // namespace drun::launcher
