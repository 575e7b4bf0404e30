// Bytes on their way from a worker to a console: chains of big buffers that are used again and
// again, so that bytes are copied by the kernel only.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace drun::launcher {

constexpr std::size_t kBufferSize = 256 * 1024;

struct Buffer {
  std::unique_ptr<char[]> data{new char[kBufferSize]};
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Free buffers, the last one used first: it is still in the processor's cache.
class BufferPool {
 public:
  [[nodiscard]] std::unique_ptr<Buffer> take();
  void give(std::unique_ptr<Buffer> buffer);

 private:
  std::vector<std::unique_ptr<Buffer>> free_;
};

class BufferChain {
 public:
  // The pool outlives the chain.
  explicit BufferChain(BufferPool& pool) : pool_(&pool) {}
  BufferChain(const BufferChain&) = delete;
  BufferChain& operator=(const BufferChain&) = delete;
  ~BufferChain();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] char front() const;  // precondition: not empty

  // Room for at least `wanted` (at most kBufferSize) bytes in one piece at the end; commit() says
  // how many were filled in. Between the two only spare() may be called.
  [[nodiscard]] char* room(std::size_t wanted) {
    if (buffers_.empty() || kBufferSize - buffers_.back()->end < wanted) grow();
    return buffers_.back()->data.get() + buffers_.back()->end;
  }
  [[nodiscard]] std::size_t spare() const { return kBufferSize - buffers_.back()->end; }
  void commit(std::size_t count) {
    buffers_.back()->end += count;
    size_ += count;
  }
  // Gives an unused buffer at the end back.
  void trim();

  void append(std::string_view bytes);
  void consume(std::size_t count);  // precondition: count <= size()
  // The first `limit` bytes as parts of one write; returns how many parts there are.
  [[nodiscard]] std::size_t parts(std::span<iovec> out, std::size_t limit) const;

 private:
  void grow();

  BufferPool* pool_;
  std::deque<std::unique_ptr<Buffer>> buffers_;
  std::size_t size_ = 0;
};

}  // namespace drun::launcher
