# Finds the header-only standalone Asio; Debian's libasio-dev ships neither a CMake config nor a .pc file.
# Defines Asio_FOUND, Asio_VERSION and the imported target Asio::Asio.
find_path(Asio_INCLUDE_DIR asio.hpp)
if(Asio_INCLUDE_DIR)
  file(STRINGS "${Asio_INCLUDE_DIR}/asio/version.hpp" _line REGEX "#define ASIO_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" _v "${_line}") # 102201 = 1.22.1
  math(EXPR _major "${_v} / 100000")
  math(EXPR _minor "${_v} / 100 % 1000")
  math(EXPR _patch "${_v} % 100")
  set(Asio_VERSION "${_major}.${_minor}.${_patch}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS Asio_INCLUDE_DIR VERSION_VAR Asio_VERSION)
if(Asio_FOUND AND NOT TARGET Asio::Asio)
  find_package(Threads REQUIRED)
  add_library(Asio::Asio INTERFACE IMPORTED)
  target_include_directories(Asio::Asio INTERFACE "${Asio_INCLUDE_DIR}")
  target_link_libraries(Asio::Asio INTERFACE Threads::Threads)
  target_compile_definitions(Asio::Asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
  # Asio 1.22.1 does not recognise Clang's standard coroutines by itself.
  target_compile_definitions(Asio::Asio INTERFACE $<$<CXX_COMPILER_ID:Clang>:ASIO_HAS_CO_AWAIT=1>)
  # GCC 12 reports awaitable_frame_base::operator delete falsely at -O1 and above.
  target_compile_options(Asio::Asio INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-mismatched-new-delete>)
endif()
mark_as_advanced(Asio_INCLUDE_DIR)
