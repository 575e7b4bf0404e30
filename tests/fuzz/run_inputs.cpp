// Runs a fuzz target once on each of the given files and folders, and on random inputs: for
// compilers without libFuzzer, and for the inputs that once broke something.
//
// usage: run_inputs [--random COUNT FIRST_SEED] PATH...
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"

namespace {

std::vector<std::filesystem::path> files_below(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void run(const std::string& bytes) {
  // A copy of the very size, so that a sanitizer sees reads beyond it.
  const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

void run_random(unsigned long count, unsigned long first_seed) {
  for (unsigned long seed = first_seed; seed < first_seed + count; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes(1 + random() % 600, '\0');
    // Mostly small numbers: choices rather than lengths.
    for (char& byte : bytes)
      byte = static_cast<char>(random() % 8 == 0 ? random() % 256 : random() % 24);
    std::fprintf(stderr, "\rseed %lu ", seed);
    run(bytes);
  }
  std::fputc('\n', stderr);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  int first = 1;
  if (argc > 3 && argv[1] == std::string_view("--random")) {
    run_random(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10));
    first = 4;
  }
  for (int i = first; i < argc; ++i) {
    for (const std::filesystem::path& file : files_below(argv[i])) {
      std::ifstream in(file, std::ios::binary);
      if (!in) {
        std::fprintf(stderr, "cannot read %s\n", file.c_str());
        return 1;
      }
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      std::fprintf(stderr, "%s\n", file.c_str());  // the last one named is the one that fails
      run(bytes);
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
