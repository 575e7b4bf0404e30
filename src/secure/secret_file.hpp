// Files with secrets in them: who may have access, and how they are read.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/file_worker.hpp"
#include "drun/base/result.hpp"

namespace drun::secure {

struct SecretRule {
  std::size_t most = 0;  // bytes; of a longer file one more comes, for the caller to see
  bool root_shares =
      false;               // a file of root's may be for its group to read, as libpq has it of keys
  bool is_public = false;  // no secret: all may read it
};

// What is in it. A file, or a pipe, which belongs to this user or to root and is nobody else's to
// read or write. Comes back after `limit` even if the file system hangs. The error says why not and
// what mends it, without the file's name in front.
[[nodiscard]] Result<std::string> read_secret(const std::string& path, const SecretRule& rule,
                                              std::chrono::milliseconds limit = kFilesLimit);

}  // namespace drun::secure
