#include "launcher/look/python_memory.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/folder_names.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

using Address = std::uint64_t;

constexpr int kMostInterpreters = 64;
constexpr std::size_t kMostThreadStates = 2'000;
constexpr std::size_t kMostFrames = 400;
constexpr std::size_t kLongestName = 400;            // characters
constexpr std::size_t kLongestLocations = 1U << 20;  // bytes

Error unreadable(const std::string& why) {
  return Error(std::make_error_code(std::errc::io_error), why);
}

// Where in the table, in words of 8 bytes, the offsets stand that are needed.
struct Layout {
  std::size_t interpreters_head = 5;
  std::size_t interpreter_next = 8;
  std::size_t threads_head = 9;
  std::size_t thread_next;
  std::size_t current_frame;
  std::size_t native_thread_id;
  std::size_t previous;
  std::size_t executable;
  std::size_t instr_ptr;
  std::size_t owner;
  std::size_t filename;
  std::size_t name;
  std::size_t linetable;
  std::size_t firstlineno;
  std::size_t code_begin;
  std::size_t ob_type;
  std::size_t tp_name;
  std::size_t bytes_size;
  std::size_t bytes_begin;
  std::size_t unicode_state;
  std::size_t unicode_length;
  std::size_t ascii_size;
};
constexpr std::size_t kWords = 96;  // more than any table has

constexpr Layout k313{.thread_next = 21,
                      .current_frame = 23,
                      .native_thread_id = 25,
                      .previous = 29,
                      .executable = 30,
                      .instr_ptr = 31,
                      .owner = 33,
                      .filename = 35,
                      .name = 36,
                      .linetable = 38,
                      .firstlineno = 39,
                      .code_begin = 43,
                      .ob_type = 45,
                      .tp_name = 47,
                      .bytes_size = 65,
                      .bytes_begin = 66,
                      .unicode_state = 68,
                      .unicode_length = 69,
                      .ascii_size = 70};
constexpr Layout k314{.thread_next = 24,
                      .current_frame = 26,
                      .native_thread_id = 28,
                      .previous = 32,
                      .executable = 33,
                      .instr_ptr = 34,
                      .owner = 36,
                      .filename = 40,
                      .name = 41,
                      .linetable = 43,
                      .firstlineno = 44,
                      .code_begin = 48,
                      .ob_type = 51,
                      .tp_name = 53,
                      .bytes_size = 75,
                      .bytes_begin = 76,
                      .unicode_state = 78,
                      .unicode_length = 79,
                      .ascii_size = 80};

void append_utf8(std::string& text, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80U | (character >> shift & 0x3fU)); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xc0U | character >> 6);
  } else if (character < 0x10000) {
    put(0xe0U | character >> 12);
    tail(6);
  } else {
    put(0xf0U | (character >> 18 & 7U));
    tail(12);
    tail(6);
  }
  tail(0);
}

class Reader {
 public:
  Reader(const ReadMemory& memory, const Layout& layout,
         const std::array<std::uint64_t, kWords>& table, Address runtime)
      : memory_(memory), layout_(layout), table_(table), runtime_(runtime) {}

  PythonStacks stacks() {
    PythonStacks found;
    Address interpreter = pointer(runtime_, layout_.interpreters_head);
    for (int i = 0; interpreter != 0 && i < kMostInterpreters; ++i) {
      Address thread = pointer(interpreter, layout_.threads_head);
      for (; thread != 0 && found.size() < kMostThreadStates && seen_.insert(thread).second;
           thread = pointer(thread, layout_.thread_next)) {
        const auto id = static_cast<pid_t>(pointer(thread, layout_.native_thread_id));
        auto frames = frames_of(pointer(thread, layout_.current_frame));
        if (id > 0 && !frames.empty()) found.insert_or_assign(id, std::move(frames));
      }
      interpreter = pointer(interpreter, layout_.interpreter_next);
    }
    return found;
  }

 private:
  struct Code {
    bool known = false;
    std::string name;
    std::string file;
    std::int64_t first_line = 0;
    std::string locations;
  };

  template <typename T>
  T read(Address address) const {
    T value{};
    if (!memory_(address, &value, sizeof value)) value = T{};
    return value;
  }
  [[nodiscard]] Address at(Address object, std::size_t word) const { return object + table_[word]; }
  // A member that is one, or a number as long; 0: there is none.
  [[nodiscard]] Address pointer(Address object, std::size_t word) const {
    return object == 0 ? 0 : read<Address>(at(object, word));
  }

  std::vector<std::string> frames_of(Address frame) {
    // The lowest of these tell who owns a reference.
    constexpr Address kPointer = ~Address{7};
    std::vector<std::string> frames;
    for (std::size_t i = 0; frame != 0 && i < kMostFrames;
         ++i, frame = pointer(frame, layout_.previous)) {
      const Code& code = code_at(pointer(frame, layout_.executable) & kPointer);
      if (!code.known) continue;  // the interpreter's own, between C and Python
      const Address begin = at(code_, layout_.code_begin);
      const Address next = pointer(frame, layout_.instr_ptr);
      const std::uint64_t instruction = next < begin ? 0 : (next - begin) / 2;
      frames.push_back(python_frame(code.name, code.file,
                                    line_of(code.locations, code.first_line, instruction)));
    }
    return frames;
  }

  const Code& code_at(Address address) {
    code_ = address;
    const auto [entry, is_new] = codes_.try_emplace(address);
    Code& code = entry->second;
    if (!is_new || address == 0) return code;
    std::array<char, 5> type{};
    const Address type_name = pointer(pointer(address, layout_.ob_type), layout_.tp_name);
    code.known = memory_(type_name, type.data(), type.size()) &&
                 std::memcmp(type.data(), "code", type.size()) == 0;
    if (!code.known) return code;
    code.name = string_at(pointer(address, layout_.name));
    code.file = string_at(pointer(address, layout_.filename));
    code.first_line = read<std::int32_t>(at(address, layout_.firstlineno));
    const Address locations = pointer(address, layout_.linetable);
    const auto size = pointer(locations, layout_.bytes_size);
    if (locations == 0 || size > kLongestLocations) return code;
    code.locations.resize(size);
    if (!memory_(at(locations, layout_.bytes_begin), code.locations.data(), size))
      code.locations.clear();
    return code;
  }

  // As UTF-8. A file name may be long, and its end is what counts.
  [[nodiscard]] std::string string_at(Address address) const {
    constexpr std::size_t kCompactExtra = 16;
    if (address == 0) return "?";
    // Two bits say whether it is shared; then the width of its characters, "compact" and "ascii".
    const auto state = read<std::uint32_t>(at(address, layout_.unicode_state));
    const std::size_t width = state >> 2 & 7U;
    const bool ascii = (state >> 6 & 1U) != 0;
    const auto length = pointer(address, layout_.unicode_length);
    if ((width != 1 && width != 2 && width != 4) || length > (1U << 20)) return "?";
    const std::size_t shown = std::min<std::size_t>(length, kLongestName);
    std::string bytes(shown * width, '\0');
    if (!memory_(address + table_[layout_.ascii_size] + (ascii ? 0 : kCompactExtra) +
                     (length - shown) * width,
                 bytes.data(), bytes.size()))
      return "?";
    if (ascii) return bytes;
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) {
      std::uint32_t character = 0;
      std::memcpy(&character, bytes.data() + i * width, width);
      append_utf8(text, character);
    }
    return text;
  }

  const ReadMemory& memory_;
  const Layout& layout_;
  const std::array<std::uint64_t, kWords>& table_;
  const Address runtime_;
  std::set<Address> seen_;  // threads
  std::map<Address, Code> codes_;
  Address code_ = 0;  // the last one
};

// Reads numbers off a table of locations.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  // Six bits a byte, the lowest first.
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 60; shift += 6) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x3fU} << shift;
      if ((next & 0x40U) == 0) break;
    }
    return value;
  }
  std::int64_t difference() {
    const std::uint64_t value = number();
    const auto size = static_cast<std::int64_t>(value >> 1);
    return (value & 1U) != 0 ? -size : size;
  }

 private:
  std::string_view rest_;
};

template <typename T>
bool read_file(const FileDescriptor& file, std::uint64_t offset, T* to, std::size_t count) {
  const std::size_t size = count * sizeof(T);
  return ::pread(file.get(), to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The address in the file of the section with the table, and that of the file's begin. Nullopt: it
// has none.
struct Section {
  std::uint64_t address = 0;
  std::uint64_t begin = 0;
};
std::optional<Section> find_section(const FileDescriptor& file) {
  constexpr std::size_t kMost = 4'096;
  constexpr std::string_view kName = ".PyRuntime";
  Elf64_Ehdr header{};
  if (!read_file(file, 0, &header, 1) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shnum > kMost ||
      header.e_phnum > kMost || header.e_shstrndx >= header.e_shnum)
    return std::nullopt;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_file(file, header.e_shoff, sections.data(), sections.size()) ||
      !read_file(file, header.e_phoff, segments.data(), segments.size()))
    return std::nullopt;
  const auto first = std::find_if(segments.begin(), segments.end(), [](const Elf64_Phdr& each) {
    return each.p_type == PT_LOAD && each.p_offset == 0;
  });
  if (first == segments.end()) return std::nullopt;
  for (const Elf64_Shdr& section : sections) {
    std::array<char, kName.size() + 1> name{};
    if (read_file(file, sections[header.e_shstrndx].sh_offset + section.sh_name, name.data(),
                  name.size()) &&
        name.back() == '\0' && kName == std::string_view(name.data(), kName.size()))
      return Section{section.sh_addr, first->p_vaddr};
  }
  return std::nullopt;
}

// Of a line of /proc/PID/maps, if it is the begin of a file that may be an interpreter.
struct Mapping {
  std::uint64_t address = 0;
  std::string file;
};
std::optional<Mapping> interpreter_in(std::string_view line) {
  const auto slash = line.find('/');
  if (slash == std::string_view::npos || !names_python(line)) return std::nullopt;
  Mapping mapping;
  mapping.file = line.substr(slash);
  const auto begin = whole_number<std::uint64_t>(take_until(line, '-'), 16);
  take_until(line, ' ');
  take_until(line, ' ');
  const auto offset = whole_number<std::uint64_t>(take_until(line, ' '), 16);
  if (!begin || offset != 0U) return std::nullopt;
  mapping.address = *begin;
  return mapping;
}

// The number that a thread has for itself, which is another one in a container.
pid_t own_number(const std::string& task, pid_t thread) {
  constexpr std::string_view kNumbers = "\nNSpid:\t";
  const auto status = read_small_file(task + "/status");
  const auto at = status ? status->find(kNumbers) : std::string::npos;
  if (at == std::string::npos) return thread;
  std::string_view numbers = std::string_view(*status).substr(at + kNumbers.size());
  numbers = numbers.substr(0, numbers.find('\n'));
  return whole_number<pid_t>(numbers.substr(numbers.rfind('\t') + 1)).value_or(thread);
}

// `own`: by the numbers that the threads have for themselves.
PythonStacks by_thread(const PythonStacks& own, const std::string& process) {
  PythonStacks stacks;
  const std::string tasks = process + "/task";
  for_each_name(tasks, [&](std::string_view name) {
    const auto thread = whole_number<pid_t>(name);
    if (!thread) return;
    const auto found = own.find(own_number(tasks + "/" + std::string(name), *thread));
    if (found != own.end()) stacks.emplace(*thread, found->second);
  });
  return stacks;
}

}  // namespace

std::int64_t line_of(std::string_view locations, std::int64_t first_line,
                     std::uint64_t instruction) {
  enum Code : std::uint8_t { OneLine = 10, NoColumn = 13, Long = 14, None = 15 };
  std::int64_t line = first_line;
  std::uint64_t covered = 0;
  for (Numbers rest(locations); !rest.empty();) {
    const std::uint8_t first = rest.byte();
    const int code = first >> 3 & 15;
    covered += (first & 7U) + 1;
    if (code < OneLine) {
      rest.byte();
    } else if (code < NoColumn) {
      line += code - OneLine;
      rest.byte();
      rest.byte();
    } else if (code != None) {
      line += rest.difference();
      for (int i = 0; code == Long && i < 3; ++i)
        rest.number();
    }
    if (instruction < covered) break;
  }
  return line;
}

Result<PythonStacks> python_stacks_in(const ReadMemory& memory, std::uint64_t table) {
  constexpr std::string_view kCookie = "xdebugpy";
  std::array<std::uint64_t, kWords> words{};
  if (!memory(table, words.data(), sizeof words)) return unreadable("its memory cannot be read");
  if (std::memcmp(words.data(), kCookie.data(), kCookie.size()) != 0)
    return unreadable("it is older than Python 3.13");
  const std::uint64_t version = words[1] >> 16;
  if (version != 0x030d && version != 0x030e) return unreadable("its version is not known");
  if (words[2] != 0) return unreadable("it has no GIL");
  return Reader(memory, version == 0x030d ? k313 : k314, words, table).stacks();
}

Result<PythonStacks> read_python_stacks(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  const auto maps = read_small_file(folder + "/maps");
  if (!maps) return unreadable("what it has mapped cannot be read");
  const ReadMemory memory = [process](std::uint64_t address, void* to, std::size_t size) {
    iovec here{to, size};
    iovec there{reinterpret_cast<void*>(address), size};
    return ::process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  };
  for (std::string_view rest = *maps; !rest.empty();) {
    const auto mapping = interpreter_in(take_until(rest, '\n'));
    if (!mapping) continue;
    // Its path is as this process sees it; in a container, as that one does.
    std::optional<Section> section;
    for (const std::string& root : {folder + "/root", std::string()}) {
      const FileDescriptor file(
          ::open((root + mapping->file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      if (file && !section) section = find_section(file);
    }
    if (!section) continue;
    const auto stacks =
        python_stacks_in(memory, section->address - section->begin + mapping->address);
    if (!stacks) return stacks;
    return by_thread(*stacks, folder);
  }
  return unreadable("its interpreter has no table of its structures");
}

}  // namespace drun::launcher
