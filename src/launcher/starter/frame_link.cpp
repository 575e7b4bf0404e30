#include "launcher/starter/frame_link.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/write.hpp>

#include "secure/token.hpp"

namespace drun::launcher {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceOfFile = 256 * 1024;

FrameLink::FrameLink(asio::io_context& io, FileDescriptor in, FileDescriptor out, bool marked,
                     Calls calls)
    : in_(io, in.release()),
      out_(io, out.release()),
      timer_(io),
      reader_(marked),
      calls_(std::move(calls)),
      fsm_(marked, marked ? kSilenceLimitOfStarter : kSilenceLimitOfEnd) {}

void FrameLink::start() {
  fsm_.on_bytes(Clock::now());
  watch();
  read();
}

void FrameLink::watch() {
  timer_.expires_after(kAliveInterval);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (cancelled || fsm_.over() || tell(fsm_.on_time(Clock::now()))) return;
    if (fsm_.speaks() && outbox_.empty()) send({hosts::FrameType::Alive});
    watch();
  });
}

void FrameLink::read() {
  in_.async_read_some(asio::buffer(buffer_), [this](asio::error_code error, std::size_t size) {
    if (fsm_.over() || (error && tell(fsm_.on_end()))) return;
    fsm_.on_bytes(Clock::now());
    reader_.take(std::string_view(buffer_.data(), size));
    deliver();
  });
}

void FrameLink::deliver() {
  while (!fsm_.over()) {
    const auto frame = reader_.next();
    if (!frame) break;
    fsm_.on_frame();
    if (frame->type != hosts::FrameType::Alive) calls_.frame(*frame);
  }
  if (const auto machine = fsm_.over() ? std::nullopt : reader_.copy_wanted())
    calls_.wants_copy(*machine);
  if (fsm_.over() || (reader_.broken() && tell(fsm_.on_broken()))) return;
  read();
}

void FrameLink::send_bytes(std::string bytes) {
  if (!out_.is_open() || closing_output_) return;
  outbox_.push_back(std::move(bytes));
  write();
}

void FrameLink::send_file(FileDescriptor file) {
  file_ = std::move(file);
  write();
}

void FrameLink::read_file() {
  std::string piece(kPieceOfFile, '\0');
  const ssize_t size = ::read(file_.get(), piece.data(), piece.size());
  if (size <= 0) return file_.reset();  // too little is noticed there
  piece.resize(static_cast<std::size_t>(size));
  outbox_.push_back(std::move(piece));
}

void FrameLink::write() {
  if (writing_) return;
  if (outbox_.empty() && file_) read_file();
  if (outbox_.empty()) return;
  writing_ = true;
  asio::async_write(out_, asio::buffer(outbox_.front()),
                    [this](asio::error_code error, std::size_t) {
                      writing_ = false;
                      if (error) {  // reading tells of the other side's end
                        forget_outbox();
                        file_.reset();
                        asio::error_code ignored;
                        out_.close(ignored);
                      } else if (!outbox_.empty()) {
                        secure::wipe(outbox_.front());  // it may have the job's token
                        outbox_.pop_front();
                      }
                      if (!outbox_.empty() || file_) return write();
                      if (closing_output_ && out_.is_open()) {
                        asio::error_code ignored;
                        out_.close(ignored);
                      }
                    });
}

void FrameLink::close_output() {
  closing_output_ = true;
  if (!outbox_.empty() || !out_.is_open()) return;
  asio::error_code ignored;
  out_.close(ignored);
}

// True if there is something to tell: it is over.
bool FrameLink::tell(const std::optional<std::string>& given_up) {
  if (!given_up) return false;
  timer_.cancel();
  calls_.closed(*given_up);
  return true;
}

void FrameLink::end() {
  fsm_.end();
  file_.reset();
  asio::error_code ignored;
  timer_.cancel();
  in_.close(ignored);
  out_.close(ignored);
  forget_outbox();
}

void FrameLink::forget_outbox() {
  for (std::string& bytes : outbox_)
    secure::wipe(bytes);  // the job's token may be there
  outbox_.clear();
}

}  // namespace drun::launcher
