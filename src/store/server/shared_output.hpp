// Output of a connection that others are sent, too: held once for all of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace drun::store {

class SharedOutput {
 public:
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  // Bytes that are left.
  [[nodiscard]] std::size_t size() const { return size_; }

  // `own` from `sent` on goes first, then `shared` from `from` on. Precondition: neither is at its
  // end.
  void push(std::string own, std::size_t sent, std::shared_ptr<const std::string> shared,
            std::size_t from) {
    size_ += own.size() - sent + shared->size() - from;
    pieces_.push_back({std::move(own), sent, std::move(shared), from});
  }
  // What is to be sent next; the first part may be empty. Precondition: not empty.
  [[nodiscard]] std::array<std::string_view, 2> front() const {
    const Piece& piece = pieces_.front();
    return {std::string_view(piece.own).substr(piece.sent),
            std::string_view(*piece.shared).substr(piece.from)};
  }
  // Precondition: no more than the two parts of front().
  void consume(std::size_t bytes) {
    Piece& piece = pieces_.front();
    size_ -= bytes;
    const std::size_t of_own = std::min(bytes, piece.own.size() - piece.sent);
    piece.sent += of_own;
    piece.from += bytes - of_own;
    if (piece.from == piece.shared->size()) pieces_.pop_front();
  }
  void clear() {
    pieces_.clear();
    size_ = 0;
  }

 private:
  struct Piece {
    std::string own;
    std::size_t sent = 0;
    std::shared_ptr<const std::string> shared;
    std::size_t from = 0;
  };

  std::list<Piece> pieces_;  // empty, it holds no memory
  std::size_t size_ = 0;
};

}  // namespace drun::store
