// Asio's own functions, compiled here alone: see ASIO_SEPARATE_COMPILATION in
// cmake/DrunOptions.cmake.
#include <asio/impl/src.hpp>
