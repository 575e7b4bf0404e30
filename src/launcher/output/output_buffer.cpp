#include "launcher/output/output_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace drun::launcher {
namespace {

constexpr std::size_t kMostFree = 16;

}  // namespace

std::unique_ptr<Buffer> BufferPool::take() {
  if (free_.empty()) return std::make_unique<Buffer>();
  auto buffer = std::move(free_.back());
  free_.pop_back();
  buffer->begin = buffer->end = 0;
  return buffer;
}

void BufferPool::give(std::unique_ptr<Buffer> buffer) {
  if (free_.size() < kMostFree) free_.push_back(std::move(buffer));
}

BufferChain::~BufferChain() {
  for (auto& buffer : buffers_)
    pool_->give(std::move(buffer));
}

char BufferChain::front() const {
  const auto filled = std::find_if(buffers_.begin(), buffers_.end(),
                                   [](const auto& buffer) { return buffer->begin != buffer->end; });
  return (*filled)->data[(*filled)->begin];
}

void BufferChain::grow() {
  buffers_.push_back(pool_->take());
}

void BufferChain::trim() {
  if (buffers_.empty() || buffers_.back()->begin != buffers_.back()->end) return;
  pool_->give(std::move(buffers_.back()));
  buffers_.pop_back();
}

void BufferChain::append(std::string_view bytes) {
  while (!bytes.empty()) {
    char* const to = room(1);
    const std::size_t count = std::min(bytes.size(), spare());
    std::memcpy(to, bytes.data(), count);
    commit(count);
    bytes.remove_prefix(count);
  }
}

void BufferChain::consume(std::size_t count) {
  size_ -= count;
  while (count > 0) {
    Buffer& buffer = *buffers_.front();
    const std::size_t taken = std::min(count, buffer.end - buffer.begin);
    buffer.begin += taken;
    count -= taken;
    if (buffer.begin == buffer.end) {
      pool_->give(std::move(buffers_.front()));
      buffers_.pop_front();
    }
  }
}

std::size_t BufferChain::parts(std::span<iovec> out, std::size_t limit) const {
  std::size_t count = 0;
  for (const auto& buffer : buffers_) {
    if (limit == 0 || count == out.size()) break;
    const std::size_t size = std::min(limit, buffer->end - buffer->begin);
    if (size == 0) continue;
    out[count++] = {buffer->data.get() + buffer->begin, size};
    limit -= size;
  }
  return count;
}

}  // namespace drun::launcher
