// The store's limits. docs/protocol.md, section 3, says what happens at each of them.
#pragma once

#include <chrono>
#include <cstddef>

namespace drun::store {

// What a peer may ask for at most. A peer that breaks one is answered with an error or closed,
// never obeyed.
struct Limits {
  std::size_t key_bytes = 8 * 1024;                  // upstream's libuv server: 8,192
  std::size_t value_bytes = 64 * 1024 * 1024;        // upstream's libuv server: 8 MiB
  std::size_t keys_per_request = 128 * 1024;         // upstream's libuv server: 131,072
  std::size_t request_bytes = std::size_t{1} << 30;  // of one request in all
  std::size_t watches_per_connection = 64;
  std::size_t connections = 1'000'000;  // the descriptor limit usually comes first
  // Of this process's descriptors, which connections leave for what else it does.
  std::size_t spare_descriptors = 16;
  // All that peers make the server hold: keys, values, waits, watches, sessions, unfinished
  // requests and unread replies.
  std::size_t total_bytes = std::size_t{4} << 30;
  // As much again is for the control protocol alone: TCPStore peers that fill the store do not stop
  // the rendezvous.
  std::size_t reserved_bytes = std::size_t{1} << 30;
  // What one of drun's jobs may make it hold of that, and a quarter more for its rendezvous: the
  // keys, waits, watches and sessions below its name. All other keys count as those of one more
  // job. 0: no limit but the others.
  std::size_t job_bytes = 0;
  // Replies and events that one peer has not read. A peer over it is dropped.
  std::size_t unread_bytes = 256 * 1024 * 1024;
  // A peer with replies waiting that reads nothing for this long is dropped.
  std::chrono::milliseconds unread_time{30'000};
  // Of a store with a token: a peer that has shown none for this long is dropped.
  std::chrono::milliseconds proof_time{10'000};
};

}  // namespace drun::store
