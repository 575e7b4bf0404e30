// Asio's own functions, compiled here alone: see ASIO_SEPARATE_COMPILATION in
// cmake/DrunOptions.cmake.
#ifdef ASIO_SEPARATE_COMPILATION

// Weak, as in all files that have them inline: in one program with such files, an object that Asio
// keeps in a function, as its error categories, must be one. Clang leaves out constructors then.
#define ASIO_DECL inline __attribute__((used))
#include <asio/impl/src.hpp>

#endif
