// elfutils' libdw, which unwinds the stacks of another process and names their functions. Loaded
// when it is needed: most jobs end without it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "drun/base/result.hpp"

namespace drun::launcher {

// The part of elfutils/libdwfl.h that is used: its entry points are versioned, and have kept their
// meaning since 0.158.
struct Dwfl;
struct DwflModule;
struct DwflThread;
struct DwflFrame;
struct ElfSymbol {  // GElf_Sym, which is Elf64_Sym
  std::uint32_t name = 0;
  std::uint8_t info = 0;
  std::uint8_t other = 0;
  std::uint16_t section = 0;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
};
struct DwflCallbacks {
  void* find_elf = nullptr;
  void* find_debug_information = nullptr;
  void* section_address = nullptr;
  char** debug_path = nullptr;
};

struct DwflLibrary {
  Dwfl* (*begin)(const DwflCallbacks*) = nullptr;
  void (*end)(Dwfl*) = nullptr;
  const char* (*message)(int) = nullptr;  // -1: of the last error
  int (*report_process)(Dwfl*, pid_t) = nullptr;
  int (*end_report)(Dwfl*, void*, void*) = nullptr;
  // The last: whether the caller has stopped the threads, and remains their tracer.
  int (*attach)(Dwfl*, pid_t, bool) = nullptr;
  int (*thread_frames)(Dwfl*, pid_t thread, int (*)(DwflFrame*, void*), void*) = nullptr;
  bool (*frame_address)(DwflFrame*, std::uint64_t*, bool* is_exact) = nullptr;
  DwflModule* (*module_at)(Dwfl*, std::uint64_t) = nullptr;
  const char* (*module_information)(DwflModule*, void***, std::uint64_t* start, std::uint64_t* end,
                                    std::uint64_t* dwarf_bias, std::uint64_t* symbol_bias,
                                    const char** main_file, const char** debug_file) = nullptr;
  const char* (*symbol_at)(DwflModule*, std::uint64_t, std::uint64_t* offset, ElfSymbol*,
                           void* section_index, void* elf, void* bias) = nullptr;
  DwflCallbacks callbacks;

  static constexpr int kContinue = 0;  // DWARF_CB_OK
  static constexpr int kAbort = 1;     // DWARF_CB_ABORT
};

// The error says what to install.
[[nodiscard]] Result<DwflLibrary> load_dwfl();

}  // namespace drun::launcher
