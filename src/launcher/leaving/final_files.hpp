// What is written into files when the job is over.
#pragma once

#include <functional>
#include <list>
#include <string>

#include <asio/io_context.hpp>

#include "base/file_desk.hpp"
#include "drun/base/result.hpp"

namespace drun::launcher {

// Each file has a thread of its own: one that hangs delays neither the others nor the loop, and is
// given up in the end. Works in the thread that runs `io`.
class FinalFiles {
 public:
  explicit FinalFiles(asio::io_context& io) : io_(io) {}
  FinalFiles(const FinalFiles&) = delete;
  FinalFiles& operator=(const FinalFiles&) = delete;

  // Begins with one. `work` may be empty; all that it uses must be its own. If it fails, `failed`
  // is called with the reason, from the loop or at once.
  void write(std::function<Status()> work,
             const std::function<void(const std::string& why)>& failed);
  // Calls `over` when all are written, have failed or are given up, perhaps at once. After the last
  // write().
  void when_over(std::function<void()> over);
  // Waits for none of them any more ("received SIGINT").
  void give_up(const std::string& why);

 private:
  struct File {
    File(asio::io_context& io, std::function<void(const std::string&)> say);
    FileDesk desk;
    std::function<void(const std::string&)> failed;
    bool over = false;
  };
  void end(File& file, const std::string& error);
  void look();

  asio::io_context& io_;
  std::list<File> files_;
  std::function<void()> over_;
};

}  // namespace drun::launcher
