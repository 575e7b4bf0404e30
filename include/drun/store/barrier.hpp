// A barrier for the processes of a job that serves as often as they like. (Client::barrier is one
// request, but a key serves once, and torch's servers know it from 2.14 on.)
//
//   drun::store::Barrier barrier(store, "epoch", me.world_size);
//   for (...) {
//     train();
//     barrier.arrive_and_wait(60s).value();
//   }
//
// Made of calls that every TCPStore server has; its keys lie below "barrier/NAME/". Two calls that
// wait for each other's answers: some tens of microseconds on one machine.
//
// Not thread-safe, and no more alive than the client it was made with.
#pragma once

#include <cstdint>
#include <string>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

namespace drun::store {

class Barrier {
 public:
  // `size` callers meet, each with a Barrier of its own of this `name`, made when all of them make
  // theirs: the n-th call of one meets the n-th of the others. Precondition: size > 0.
  Barrier(Client& client, std::string name, int size);

  // Returns when all have called it. A Timeout says how many have come; this caller stays counted,
  // and the next call goes on waiting for the same (torch 1.13: the connection is closed then).
  // std::errc::protocol_error: more than `size` have come.
  [[nodiscard]] Status arrive_and_wait(Client::Timeout timeout = {});

 private:
  [[nodiscard]] std::string key(std::int64_t time, const char* part) const;
  [[nodiscard]] Error wrong(std::error_code code, const std::string& what) const;

  Client& client_;
  std::string name_;
  int size_;
  std::int64_t passed_ = 0;  // this often
  bool counted_ = false;     // for the next time
};

}  // namespace drun::store
