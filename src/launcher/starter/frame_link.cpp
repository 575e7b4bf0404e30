#include "launcher/starter/frame_link.hpp"

#include <unistd.h>

#include <string_view>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/write.hpp>

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
      silence_limit_(marked ? kSilenceLimitOfStarter : kSilenceLimitOfEnd),
      greeted_(!marked) {}

void FrameLink::start() {
  heard_ = Clock::now();
  watch();
  read();
}

void FrameLink::watch() {
  timer_.expires_after(kAliveInterval);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (cancelled || closed_) return;
    if (greeted_ && Clock::now() - heard_ > silence_limit_)
      return close("nothing was heard of it for " + std::to_string(silence_limit_.count()) + " s");
    if (greeted_ && outbox_.empty()) send({hosts::FrameType::Alive});
    watch();
  });
}

void FrameLink::read() {
  in_.async_read_some(asio::buffer(buffer_), [this](asio::error_code error, std::size_t size) {
    if (closed_) return;
    if (error) return close("");
    heard_ = Clock::now();
    reader_.take(std::string_view(buffer_.data(), size));
    deliver();
  });
}

void FrameLink::deliver() {
  while (!closed_) {
    const auto frame = reader_.next();
    if (!frame) break;
    greeted_ = true;
    if (frame->type != hosts::FrameType::Alive) calls_.frame(*frame);
  }
  if (const auto machine = closed_ ? std::nullopt : reader_.copy_wanted())
    calls_.wants_copy(*machine);
  if (closed_) return;
  if (reader_.broken())
    return close(greeted_ ? "what it sent is not drun's" : "what answers there is no drun");
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
                        outbox_.clear();
                        file_.reset();
                        asio::error_code ignored;
                        out_.close(ignored);
                      } else if (!outbox_.empty()) {
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

void FrameLink::close(const std::string& given_up) {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  calls_.closed(given_up);
}

void FrameLink::end() {
  closed_ = true;
  file_.reset();
  asio::error_code ignored;
  timer_.cancel();
  in_.close(ignored);
  out_.close(ignored);
  outbox_.clear();
}

}  // namespace drun::launcher
