#include "launcher/look/native_stacks.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string_view>

#include "launcher/look/frame_name.hpp"
#include "launcher/look/held_threads.hpp"
#include "launcher/look/thread_facts.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostAddresses = 400;  // of a stack: a recursion may have no end

struct CloseDwfl {
  const DwflLibrary* library;
  void operator()(Dwfl* dwfl) const { library->end(dwfl); }
};
using OpenDwfl = std::unique_ptr<Dwfl, CloseDwfl>;

struct Walk {
  const DwflLibrary* libdw = nullptr;
  std::vector<std::uint64_t> addresses;
};

// Called from C.
int on_frame(DwflFrame* frame, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  std::uint64_t address = 0;
  bool exact = false;
  if (!walk.libdw->frame_address(frame, &address, &exact)) return DwflLibrary::kAbort;
  // A return address is the one after the call, which may belong to the next function.
  walk.addresses.push_back(exact || address == 0 ? address : address - 1);
  return walk.addresses.size() < kMostAddresses ? DwflLibrary::kContinue : DwflLibrary::kAbort;
}

std::string frame_text(const DwflLibrary& library, Dwfl* dwfl, std::uint64_t address) {
  const auto hexadecimal = [](std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return std::string(text);
  };
  DwflModule* module = library.module_at(dwfl, address);
  if (module == nullptr) return "?";  // an address that differs from rank to rank says nothing
  std::uint64_t start = 0;
  const char* path = library.module_information(module, nullptr, &start, nullptr, nullptr, nullptr,
                                                nullptr, nullptr);
  const std::string name = module_name(path == nullptr ? "?" : path);
  std::uint64_t offset = 0;
  ElfSymbol symbol;
  const char* found =
      library.symbol_at(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
  if (found == nullptr) return name + "+" + hexadecimal(address - start);
  return function_name(found) + " (" + name + ")";
}

}  // namespace

std::map<pid_t, NativeStack> native_stacks(const DwflLibrary& library, pid_t process,
                                           const std::vector<pid_t>& threads,
                                           std::chrono::steady_clock::time_point deadline) {
  std::map<pid_t, NativeStack> result;
  const auto fail = [&](const std::string& why) {
    for (const pid_t thread : threads)
      result[thread].problem = why;
    return result;
  };
  const auto last_error = [&] {
    const char* text = library.message(-1);
    const bool said = text != nullptr && std::string_view(text) != "no error";
    return said ? "libdw: " + std::string(text) : std::string("no stack could be read");
  };
  const OpenDwfl dwfl(library.begin(&library.callbacks), CloseDwfl{&library});
  if (!dwfl) return fail(last_error());
  // Of a process whose first thread has ended the kernel shows nothing; but by another one.
  const pid_t alive = first_living(process, threads);
  // Before the threads are stopped: it takes its time.
  if (library.report_process(dwfl.get(), alive) != 0 ||
      library.end_report(dwfl.get(), nullptr, nullptr) != 0)
    return fail(last_error());
  HeldThreads held;
  held.stop(process, threads, deadline);
  std::map<pid_t, Walk> walks;
  std::string refused;
  bool attached = false;
  for (const pid_t thread : threads) {
    NativeStack& stack = result[thread];
    if (!held.holds(thread)) {
      stack.problem = held.problem(thread);
      continue;
    }
    if (!attached && refused.empty()) {
      attached = library.attach(dwfl.get(), alive, true) == 0;
      if (!attached) refused = last_error();
    }
    if (!attached) {
      stack.problem = refused;
      continue;
    }
    Walk& walk = walks[thread];
    walk.libdw = &library;
    const int code = library.thread_frames(dwfl.get(), thread, on_frame, &walk);
    if (code < 0 && walk.addresses.empty()) stack.problem = last_error();
  }
  held.release();
  for (const auto& [thread, walk] : walks) {
    auto& frames = result[thread].frames;
    for (const std::uint64_t address : walk.addresses)
      frames.push_back(frame_text(library, dwfl.get(), address));
    if (walk.addresses.size() == kMostAddresses) frames.emplace_back("...");
    drop_start(frames);
  }
  return result;
}

}  // namespace drun::launcher
