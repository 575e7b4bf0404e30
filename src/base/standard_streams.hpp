// The standard streams of a program that may have been started without some of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun {

// Opens /dev/null for each standard stream that is closed: else the next socket would get its
// number, and what is printed or logged would go to a peer. Call first of all in main(). Throws
// std::system_error if /dev/null cannot be opened.
void open_standard_streams();

// All of `bytes`, at once; the error is that of "write standard output".
Status write_standard_output(std::string_view bytes);

// One line, its end with it, of about `most` bytes; what has come so far if it does not end in time
// or not at all.
std::string read_standard_input_line(std::size_t most,
                                     std::chrono::steady_clock::time_point deadline);

}  // namespace drun
