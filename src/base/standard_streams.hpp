// The standard streams of a program that may have been started without some of them.
#pragma once

namespace drun {

// Opens /dev/null for each standard stream that is closed: else the next socket would get its
// number, and what is printed or logged would go to a peer. Call first of all in main(). Throws
// std::system_error where /dev/null cannot be opened.
void open_standard_streams();

}  // namespace drun
