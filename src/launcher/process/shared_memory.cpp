#include "launcher/process/shared_memory.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "base/file_descriptor.hpp"
#include "base/folder_names.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "launcher/process/descendants.hpp"

namespace drun::process {
namespace {

constexpr int kLooksAtOne = 7;

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kSmall = "0123456789abcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kLetters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// A prefix, then groups of these letters, and nothing else.
struct Scratch {
  std::string_view prefix;
  std::string_view letters;
  std::size_t length = 0;  // 0: numbers, of any length; else so many, at random
  std::size_t least = 1;   // groups
  std::size_t most = 1;
  char between = '\0';
};
constexpr std::array kScratch{
    // torch_PID_RANDOM_N, once without the last: tensors between processes.
    Scratch{"torch_", kDigits, 0, 2, 3, '_'},
    Scratch{"nccl-", kLetters, 6},  // NCCL and RCCL, between ranks: mkstemp(3)
    Scratch{"psm_", kHex, 8},       // Python's SharedMemory() without a name
    Scratch{"sem.mp-", kSmall, 8},  // locks of Python's multiprocessing
    // LLVM's and Intel's OpenMP: the process, and the user in newer ones.
    Scratch{"__KMP_REGISTERED_LIB_", kDigits, 0, 1, 2, '_'},
    Scratch{"cuda.shm.", kHex, 0, 3, 3, '.'},  // of the user, the process, and a number
    Scratch{"ucx_shm_posix_", kHex},
    Scratch{"mpich_shar_tmp", kLetters, 6},
};

// Small letters alone are a word that somebody chose, more often than they are random.
bool is_random(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c < 'a' || c > 'z'; });
}

bool fits(const Scratch& scratch, std::string_view name) {
  if (!name.starts_with(scratch.prefix)) return false;
  std::string_view rest = name.substr(scratch.prefix.size());
  for (std::size_t groups = 1; groups <= scratch.most; ++groups) {
    const auto end = std::min(rest.find_first_not_of(scratch.letters), rest.size());
    if (end == 0) return false;
    if (scratch.length != 0 && (end != scratch.length || !is_random(rest.substr(0, end))))
      return false;
    if (end == rest.size()) return groups >= scratch.least;
    if (rest[end] != scratch.between) return false;
    rest.remove_prefix(end + 1);
  }
  return false;
}

std::optional<struct stat> status_of(const std::string& path, int flags) {
  struct stat found {};
  if (::fstatat(AT_FDCWD, path.c_str(), &found, flags) != 0) return std::nullopt;
  return found;
}

// Its only name is the one in the folder, and this user may decide about it.
bool is_own_file(const struct stat& file) {
  return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() && file.st_nlink == 1;
}

// Of a line of /proc/PID/maps: "55d0-55d1 rw-s 00000000 00:1a 1234   /dev/shm/psm_0a1b2c3d".
std::optional<ino_t> mapped_inode(std::string_view line, dev_t device) {
  std::array<std::string_view, 5> words;
  for (auto& word : words)
    word = take_until(line, ' ');
  const auto [begin, rights, offset, where, inode] = words;
  const auto colon = where.find(':');
  if (colon == where.npos) return std::nullopt;
  const auto number = [](std::string_view text, int base) {
    return std::strtoull(std::string(text).c_str(), nullptr, base);
  };
  if (number(where.substr(0, colon), 16) != gnu_dev_major(device) ||
      number(where.substr(colon + 1), 16) != gnu_dev_minor(device))
    return std::nullopt;
  return number(inode, 10);
}

}  // namespace

bool is_scratch_name(std::string_view name) {
  return std::any_of(kScratch.begin(), kScratch.end(),
                     [name](const Scratch& each) { return fits(each, name); });
}

SharedMemory::SharedMemory(std::vector<std::string> keep, std::string folder)
    : keep_(std::move(keep)), folder_(std::move(folder)) {}

void SharedMemory::begin() {
  if (const auto status = status_of(folder_, 0)) device_ = status->st_dev;
  others_ = present(Whose::Anybodys);
}

bool SharedMemory::keeps(const std::string& name) const {
  return std::any_of(keep_.begin(), keep_.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// With a name of a library. Ours are those that may be the workers', whoever made them; what is not
// may become it, when another name of it goes or its owner changes.
std::set<SharedMemory::File> SharedMemory::present(Whose whose) const {
  std::set<File> files;
  for_each_name(folder_, [&](std::string_view each) {
    if (!is_scratch_name(each)) return;
    const std::string name(each);
    const auto status = status_of(folder_ + "/" + name, AT_SYMLINK_NOFOLLOW);
    if (!status) return;
    if (whose == Whose::Anybodys ||
        (is_own_file(*status) && status->st_dev == device_ && !keeps(name)))
      files.emplace(status->st_ino, name);
  });
  return files;
}

std::size_t SharedMemory::look(pid_t root) {
  const auto files = present(Whose::Ours);
  const auto is_gone = [&](const File& file) { return !files.contains(file); };
  std::erase_if(own_, is_gone);
  std::erase_if(looks_, [&](const auto& each) { return is_gone(each.first); });
  std::set<ino_t> wanted;
  for (const File& file : files) {
    if (others_.contains(file) || own_.contains(file) || ++looks_[file] > kLooksAtOne) continue;
    wanted.insert(file.first);
  }
  if (wanted.empty()) return own_.size();
  const auto held = held_below(root, wanted);
  for (const File& file : files) {
    if (!held.contains(file.first)) continue;
    own_.insert(file);
    looks_.erase(file);
  }
  return own_.size();
}

// The number of a process that has ended may be a stranger's by the time it is looked at: only what
// is still below counts.
std::set<ino_t> SharedMemory::held_below(pid_t root, const std::set<ino_t>& wanted) const {
  std::map<pid_t, std::set<ino_t>> held;
  const auto found = [&] {
    std::set<ino_t> all;
    for (const auto& [pid, files] : held)
      all.insert(files.begin(), files.end());
    return all;
  };
  const auto processes = descendants_of(root);
  for (const pid_t pid : processes)
    note_files(pid, wanted, held[pid]);
  // That is dearer.
  if (found().size() < wanted.size())
    for (const pid_t pid : processes)
      note_maps(pid, wanted, held[pid]);
  const auto still = descendants_of(root);
  std::erase_if(held, [&](const auto& each) {
    return std::find(still.begin(), still.end(), each.first) == still.end();
  });
  return found();
}

void SharedMemory::note_files(pid_t pid, const std::set<ino_t>& wanted,
                              std::set<ino_t>& held) const {
  const std::string open = "/proc/" + std::to_string(pid) + "/fd/";
  for_each_name(open, [&](std::string_view number) {
    const std::string link = open + std::string(number);
    if (!link_target(link).starts_with(folder_ + "/")) return;
    const auto status = status_of(link, 0);
    if (status && status->st_dev == device_ && wanted.contains(status->st_ino))
      held.insert(status->st_ino);
  });
}

void SharedMemory::note_maps(pid_t pid, const std::set<ino_t>& wanted,
                             std::set<ino_t>& held) const {
  const auto maps = read_small_file("/proc/" + std::to_string(pid) + "/maps");
  if (!maps) return;
  for (std::string_view rest = *maps; !rest.empty();) {
    const std::string_view line = take_until(rest, '\n');
    if (line.find(folder_ + "/") == line.npos) continue;
    const auto inode = mapped_inode(line, device_);
    if (inode && wanted.contains(*inode)) held.insert(*inode);
  }
}

SharedMemory::Swept SharedMemory::sweep() {
  Swept swept;
  std::erase_if(own_, [&](const File& file) { return remove(file, swept); });
  return swept;
}

// True: it is gone, or none of ours any more.
bool SharedMemory::remove(const File& file, Swept& swept) const {
  const std::string path = folder_ + "/" + file.second;
  const FileDescriptor opened(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) return true;
  struct stat found {};
  if (::fstat(opened.get(), &found) != 0 || found.st_ino != file.first || found.st_dev != device_ ||
      !is_own_file(found))
    return true;
  // Granted only if nobody else has it open or mapped. Who opens it from now on waits until this is
  // closed; the kernel would tell by a signal, and this one is ignored by default.
  if (::fcntl(opened.get(), F_SETSIG, SIGURG) != 0 ||
      ::fcntl(opened.get(), F_SETLEASE, F_WRLCK) != 0)
    return false;
  const auto named = status_of(path, AT_SYMLINK_NOFOLLOW);
  if (!named || named->st_ino != file.first || named->st_dev != device_) return true;
  if (::unlink(path.c_str()) != 0) return true;
  swept.names.push_back(file.second);
  swept.bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
  return true;
}

}  // namespace drun::process
