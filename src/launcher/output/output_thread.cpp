#include "launcher/output/output_thread.hpp"

#include <poll.h>

#include <array>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "base/signal_block.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// The loop gives up by itself after its patience; this margin is for a write that hangs.
constexpr std::chrono::milliseconds kStopMargin{500};
// The wait is counted in so many parts: a machine that stood still uses up one of them, not all.
constexpr int kStopParts = 10;
constexpr std::chrono::milliseconds kResizeLimit{100};

}  // namespace

std::unique_ptr<OutputCommand> message_command(std::string text) {
  auto command = std::make_unique<OutputCommand>();
  command->kind = OutputCommand::Kind::Message;
  command->text = std::move(text);
  return command;
}

OutputThread::OutputThread(const OutputLoopOptions& options)
    : loop_(std::make_unique<OutputLoop>(options)) {}

OutputThread::~OutputThread() {
  stop({}, kReaderPatience);
}

void OutputThread::start() {
  const SignalBlock no_signals;  // they are the other threads' business
  try {
    thread_ = std::thread([loop = loop_.get()] { loop->run(); });
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "start a thread for the workers' output");
  }
}

void OutputThread::post(std::unique_ptr<OutputCommand> command) {
  loop_->post(std::move(command));
}

std::unique_ptr<OutputAnswer> OutputThread::ask(std::unique_ptr<OutputCommand> command,
                                                std::chrono::milliseconds limit) {
  const std::uint64_t id = command->id = ++last_id_;
  loop_->post(std::move(command));
  return wait_answer(id, limit);
}

void OutputThread::resize(const std::vector<std::unique_ptr<Stream>>& streams) {
  auto command = std::make_unique<OutputCommand>();
  command->kind = OutputCommand::Kind::Resize;
  for (const auto& stream : streams)
    command->streams.push_back(stream.get());
  (void)ask(std::move(command), kResizeLimit);
}

bool OutputThread::drain(std::vector<std::unique_ptr<Stream>> streams,
                         std::chrono::milliseconds limit) {
  auto command = std::make_unique<OutputCommand>();
  command->kind = OutputCommand::Kind::Drain;
  command->released = std::move(streams);
  last_drain_ = last_id_ + 1;  // which ask() gives it
  return ask(std::move(command), limit) != nullptr;
}

FlushProgress OutputThread::flush_progress() const {
  const auto [output, error] = loop_->unwritten();
  return {
      loop_->drained() >= last_drain_, output, error, {loop_->taken(false), loop_->taken(true)}};
}

void OutputThread::stop(std::vector<std::unique_ptr<Stream>> streams,
                        std::chrono::milliseconds patience) {
  if (!thread_.joinable()) return;
  auto command = std::make_unique<OutputCommand>();
  command->kind = OutputCommand::Kind::Stop;
  command->released = std::move(streams);
  command->patience = patience;
  const std::uint64_t id = command->id = ++last_id_;
  loop_->post(std::move(command));
  const auto taken = [&] { return std::array{loop_->taken(false), loop_->taken(true)}; };
  for (int silent = 0; silent < kStopParts;) {
    const auto before = taken();
    if (wait_answer(id, (patience + kStopMargin) / kStopParts)) return thread_.join();
    silent = taken() == before ? silent + 1 : 0;
  }
  thread_.detach();
  (void)loop_.release();  // the stuck thread's, until the process ends
}

// Answers that came too late for their question are dropped.
std::unique_ptr<OutputAnswer> OutputThread::wait_answer(std::uint64_t id,
                                                        std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    while (auto answer = loop_->answer())
      if (answer->id == id) return answer;
    const auto left = time_left(deadline);
    if (left.count() == 0) return nullptr;
    pollfd ready{loop_->answer_fd(), POLLIN, 0};
    ::poll(&ready, 1, poll_limit(left));
  }
}

}  // namespace drun::launcher
