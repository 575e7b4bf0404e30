// A folder of made-up files, such as a /sys of another machine. Removed with its contents.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace drun::test {

class FileTree {
 public:
  FileTree() {
    std::string name = (std::filesystem::temp_directory_path() / "drun-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
  }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;
  ~FileTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  // `path` begins with '/', as on the machine that is meant.
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    if (!std::filesystem::exists(file)) throw std::runtime_error("cannot write " + file.string());
  }
  void link(const std::string& path, const std::string& target) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_directory_symlink(root_ + target, file);
  }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }

  // To be put in front of a path that begins with '/'.
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace drun::test
