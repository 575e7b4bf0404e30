// Versions by the names and the first lines of files: nothing is run, nothing is imported.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/environment_variable.hpp"
#include "base/file_worker.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "facts/gather.hpp"

namespace drun::facts {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 20'000;  // of one folder of packages

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// "3.11", from the name that the interpreter's links lead to; empty: it does not say.
std::string python_version(const fs::path& interpreter) {
  std::error_code error;
  const std::string name = fs::canonical(interpreter, error).filename().string();
  const std::string_view version =
      std::string_view(name).substr(std::min(name.size(), std::string_view("python").size()));
  const bool is_version = name.starts_with("python") && version.find('.') != version.npos &&
                          version.find_first_not_of("0123456789.") == version.npos;
  return error || !is_version ? "" : std::string(version);
}

// Where this Python looks for packages, the first place first.
std::vector<fs::path> package_folders(const FactsQuery& question, const std::string& version) {
  std::vector<fs::path> folders;
  const std::string paths = environment_variable(question.environment, "PYTHONPATH").value_or("");
  std::string_view rest = paths;
  while (!rest.empty())
    if (const std::string_view each = take_until(rest, ':'); !each.empty())
      folders.emplace_back(each);
  const auto add = [&](const fs::path& prefix) {
    for (const char* lib : {"lib", "lib64"})
      folders.push_back(prefix / lib / ("python" + version) / "site-packages");
    folders.push_back(prefix / "local" / "lib" / ("python" + version) / "dist-packages");
    folders.push_back(prefix / "lib" / "python3" / "dist-packages");
  };
  const fs::path interpreter = question.interpreter;
  const fs::path prefix = interpreter.parent_path().parent_path();
  add(prefix);
  std::error_code error;
  const fs::path base = fs::canonical(interpreter, error).parent_path().parent_path();
  // A virtual environment sees the packages of its base only if it says so.
  const auto settings = read_small_file((prefix / "pyvenv.cfg").string());
  const bool sees_base =
      !settings || settings->find("include-system-site-packages = true") != std::string::npos;
  if (!error && base != prefix && sees_base) add(base);
  return folders;
}

// What stands between quotes in the line that begins with `name`: "__version__ = '2.4.0'".
std::string quoted_value(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (!line.starts_with(name)) continue;
    const auto equals = line.find('=');
    const auto begin = line.find_first_of("'\"", equals == line.npos ? line.size() : equals);
    if (begin == line.npos) continue;
    const auto end = line.find(line[begin], begin + 1);
    if (end != line.npos) return std::string(line.substr(begin + 1, end - begin - 1));
  }
  return "";
}

// "2.20.5" of "nvidia_nccl_cu12-2.20.5.dist-info".
std::string nccl_package(const fs::path& folder) {
  std::error_code error;
  std::size_t looked = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && looked < kMostEntries;
       at.increment(error), ++looked) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with("nvidia_nccl_") || !name.ends_with(".dist-info")) continue;
    const auto begin = name.find('-');
    if (begin == name.npos) continue;
    return name.substr(begin + 1, name.size() - begin - 1 - std::string_view(".dist-info").size());
  }
  return "";
}

// "2.21.5" of a library "libnccl.so.2 -> libnccl.so.2.21.5".
std::string nccl_library(const FactsQuery& question) {
  std::vector<fs::path> folders;
  const std::string paths =
      environment_variable(question.environment, "LD_LIBRARY_PATH").value_or("");
  std::string_view rest = paths;
  while (!rest.empty())
    if (const std::string_view each = take_until(rest, ':'); !each.empty())
      folders.emplace_back(each);
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib"})
    folders.emplace_back(question.root + folder);
  constexpr std::string_view kBefore = "libnccl.so.";
  for (const fs::path& folder : folders) {
    std::error_code error;
    const std::string name = fs::canonical(folder / "libnccl.so.2", error).filename().string();
    if (!error && name.starts_with(kBefore)) return name.substr(kBefore.size());
  }
  return "";
}

// "12.4" of /usr/local/cuda -> cuda-12.4.
std::string cuda_folder(const FactsQuery& question) {
  const auto home = environment_variable(question.environment, "CUDA_HOME");
  std::error_code error;
  const std::string name =
      fs::canonical(home.value_or(question.root + "/usr/local/cuda"), error).filename().string();
  return !error && name.starts_with("cuda-") ? name.substr(std::string_view("cuda-").size()) : "";
}

}  // namespace

void gather_python(const FactsQuery& question, Sheet& sheet) {
  const auto put = [&sheet](std::string_view key, const std::string& value) {
    if (!value.empty()) sheet.emplace(key, value);
  };
  std::string version;
  if (!question.interpreter.empty()) {
    about_to("look at " + question.interpreter);
    version = python_version(question.interpreter);
    put("python", version);
  }
  if (!version.empty()) {
    for (const fs::path& folder : package_folders(question, version)) {
      about_to("look at " + folder.string());
      if (!is_folder(folder / "torch")) continue;
      const auto text = read_small_file((folder / "torch" / "version.py").string()).value_or("");
      put("torch", quoted_value(text, "__version__"));
      put("cuda", quoted_value(text, "cuda"));
      put("nccl", nccl_package(folder));
      break;
    }
  }
  about_to("look at the libraries");
  put("nccl", nccl_library(question));
  put("cuda", cuda_folder(question));
}

}  // namespace drun::facts
