#include "drun/store/barrier.hpp"

#include <cassert>
#include <system_error>
#include <utility>

#include "drun/store/errors.hpp"
#include "store/client/client_calls.hpp"

namespace drun::store {

Barrier::Barrier(Client& client, std::string name, int size)
    : client_(client), name_(std::move(name)), size_(size) {
  assert(size > 0);
}

std::string Barrier::key(std::int64_t time, const char* part) const {
  return "barrier/" + name_ + "/" + std::to_string(time) + "/" + part;
}

Error Barrier::wrong(std::error_code code, const std::string& what) const {
  return Error(
      code, "barrier " + quote_bytes(name_) + " at " + to_string(client_.endpoint()) + ": " + what);
}

Status Barrier::arrive_and_wait(Client::Timeout timeout) {
  const std::string here = key(passed_, "here");
  const std::string open = key(passed_, "open");
  bool last = false;
  if (!counted_) {
    const auto count = client_.add(here, 1, timeout);
    if (!count) return count.error();
    counted_ = true;
    if (*count > size_)
      return wrong(std::make_error_code(std::errc::protocol_error),
                   "more than " + std::to_string(size_) + " have come");
    last = *count == size_;
  }
  if (!last) {
    const Status opened = client_.wait({open}, timeout);
    if (!opened && (opened.error().code() != Errc::Timeout || !client_.connected())) return opened;
    if (!opened) {
      const auto count = client_.add(here, 0);
      if (!count) return count.error();
      // All are there, but the last one has not said so: it may have died right then.
      if (*count < size_)
        return wrong(Errc::Timeout, "timed out: " + std::to_string(*count) + " of " +
                                        std::to_string(size_) + " have come");
      last = true;
    }
  }
  if (last) {
    const Status told = client_.set(open, "");
    if (!told) return told;
    // All have come to this one, so all have left the one before.
    for (const char* part : {"here", "open"}) {
      if (passed_ == 0) break;
      const auto deleted = client_.delete_key(key(passed_ - 1, part));
      if (!deleted) return deleted.error();
    }
  }
  ++passed_;
  counted_ = false;
  return Done{};
}

}  // namespace drun::store
