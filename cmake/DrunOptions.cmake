# Compile options of every drun target. Nothing here leaks to consumers: all of it is PRIVATE.
set(DRUN_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")
option(DRUN_WERROR "Treat warnings as errors" OFF)

find_program(DRUN_CCACHE ccache)
if(DRUN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache's manual asks for where headers are precompiled. The compiler's list of dependencies tells it
  # what a file includes: without, a file that is not in the cache would be preprocessed once more.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
    "${DRUN_CCACHE}")
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(drun_build_flags INTERFACE)
target_compile_features(drun_build_flags INTERFACE cxx_std_20)
target_include_directories(drun_build_flags INTERFACE "${PROJECT_SOURCE_DIR}/src") # private headers: "store/table.hpp"
# Each file that uses Asio would compile its reactor and scheduler again. src/base/asio.cpp has them once.
target_compile_definitions(drun_build_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:ASIO_SEPARATE_COMPILATION>)
target_compile_options(drun_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Wformat=2
  # Where rooms are compiled as one file, a local name hides one of another file without any harm.
  $<$<NOT:$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wshadow>
  # There, too, GCC takes what a source hides for something that a header would show to all.
  $<$<AND:$<BOOL:${CMAKE_UNITY_BUILD}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wlogical-op>
  # GCC 12 sees overlapping copies in every "text" + std::string once it optimises (GCC bug 105651).
  # With precompiled headers it sees overruns of a string's small buffer as well.
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>"
  # It also takes the unused alternatives of a std::variant for uninitialised ones.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>
  # Clang 19 finds std::get_temporary_buffer deprecated inside libstdc++ 12's own std::stable_sort.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  # Two clones precompile the same bytes: what ccache has of one serves the other.
  "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
  # GCC collects garbage as soon as a file takes 128 MB, again and again: a tenth of its time here.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
  $<$<BOOL:${DRUN_WERROR}>:-Werror>)
# GNU ld takes long over debug information, and there are many tests.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  find_program(DRUN_LLD ld.lld)
  if(DRUN_LLD)
    target_link_options(drun_build_flags INTERFACE -fuse-ld=lld)
  endif()
endif()
if(DRUN_SANITIZE)
  target_compile_options(drun_build_flags INTERFACE -fsanitize=${DRUN_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(drun_build_flags INTERFACE -fsanitize=${DRUN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND DRUN_SANITIZE MATCHES "undefined")
    # function: a library loaded at run time knows its functions by types of its own.
    # vptr: it opens a pipe for each look, which tests of a lack of descriptors have none left for.
    target_compile_options(drun_build_flags INTERFACE -fno-sanitize=function,vptr)
  endif()
  # Not __SANITIZE_ADDRESS__ and its like: Clang 19 does not define them.
  if(DRUN_SANITIZE MATCHES "address")
    target_compile_definitions(drun_build_flags INTERFACE DRUN_ASAN)
  endif()
  if(DRUN_SANITIZE MATCHES "thread")
    target_compile_definitions(drun_build_flags INTERFACE DRUN_TSAN
      ASIO_DISABLE_FENCED_BLOCK) # GCC: fences unsupported under TSan
  endif()
endif()

# The standard headers that most files include, parsed once. Each file still includes what it uses: see
# tests/lint/standard_headers.py.
set(DRUN_PRECOMPILED_HEADERS <algorithm> <charconv> <chrono> <cstdint> <filesystem> <functional> <map> <memory>
  <optional> <span> <string> <string_view> <system_error> <utility> <variant> <vector>)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "// Precompiled headers need a target.\n")
add_library(drun_precompiled STATIC "${PROJECT_BINARY_DIR}/precompiled.cpp")
target_link_libraries(drun_precompiled PRIVATE drun_build_flags)
target_precompile_headers(drun_precompiled PRIVATE ${DRUN_PRECOMPILED_HEADERS})
# What a release compiles most of its rooms with: see drun_add_library(). Clang takes its own -Og for -O1.
set(DRUN_SELDOM_RUN $<$<CONFIG:Release>:-Og>
  $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-finline-small-functions>
  $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-finline-functions-called-once>)
target_compile_options(drun_precompiled PRIVATE ${DRUN_SELDOM_RUN})
set(precompiled_often drun_precompiled)
# Its own: GCC takes the level of the precompiled headers, whatever the command line says.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(precompiled_often drun_often_precompiled)
  add_library(drun_often_precompiled STATIC "${PROJECT_BINARY_DIR}/precompiled.cpp")
  target_compile_options(drun_often_precompiled PRIVATE -O2)
  target_link_libraries(drun_often_precompiled PRIVATE drun_build_flags)
  target_precompile_headers(drun_often_precompiled PRIVATE ${DRUN_PRECOMPILED_HEADERS})
endif()

# drun_add_library(<name> [OFTEN_RUN] SOURCES ... [HEADERS ...] [DEPENDS ...] [PRIVATE_DEPENDS ...])
# HEADERS are the public ones, under include/; only libraries that have some are installed.
# OFTEN_RUN: somebody waits for this code. For the rest only those wait who build drun: a release has it with -Og,
# and small functions inline, which takes the compiler a fifth less time than -O1, and that a quarter less than -O2.
function(drun_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OFTEN_RUN" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS")
  if(NOT arg_SOURCES) # headers alone
    add_library(drun_${name} INTERFACE)
    add_library(drun::${name} ALIAS drun_${name})
    target_link_libraries(drun_${name} INTERFACE ${arg_DEPENDS})
    return()
  endif()
  add_library(drun_${name} STATIC)
  add_library(drun::${name} ALIAS drun_${name})
  target_sources(drun_${name} PRIVATE ${arg_SOURCES})
  if(arg_OFTEN_RUN)
    target_compile_options(drun_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
    target_precompile_headers(drun_${name} REUSE_FROM ${precompiled_often})
  else()
    target_compile_options(drun_${name} PRIVATE ${DRUN_SELDOM_RUN})
    target_precompile_headers(drun_${name} REUSE_FROM drun_precompiled)
  endif()
  if(arg_HEADERS)
    list(TRANSFORM arg_HEADERS PREPEND "${PROJECT_SOURCE_DIR}/include/")
    target_sources(drun_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${arg_HEADERS})
  endif()
  target_compile_features(drun_${name} PUBLIC cxx_std_20)
  target_link_libraries(drun_${name} PUBLIC ${arg_DEPENDS} PRIVATE $<BUILD_INTERFACE:drun_build_flags>)
  foreach(dependency IN LISTS arg_PRIVATE_DEPENDS) # compiled in: an installed library must not ask for them
    target_link_libraries(drun_${name} PRIVATE $<BUILD_INTERFACE:${dependency}>)
  endforeach()
  set_target_properties(drun_${name} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# `programs` builds what a user runs, `tests_<label>` the tests of one label and what they run.
add_custom_target(programs)

# drun_precompile(<target>): with the precompiled headers of the libraries, also for a program, of which nobody waits for
# what is not in a library.
function(drun_precompile name)
  # GCC takes headers that were precompiled with -fPIC only where it says so, and CMake says -fPIE for a program.
  target_compile_options(${name} PRIVATE -fPIC ${DRUN_SELDOM_RUN})
  target_precompile_headers(${name} REUSE_FROM drun_precompiled)
endfunction()

# drun_add_program(<name> SOURCES ... DEPENDS ... [FIRST room...]): one relocatable file, C++ runtime linked in.
# FIRST: its rooms that are OFTEN_RUN. Of a template that several rooms use, as std::string's append, the linker keeps
# the first that it sees; the others run that, too.
function(drun_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;FIRST")
  add_executable(${name} ${arg_SOURCES})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(room IN LISTS arg_FIRST)
      target_sources(${name} PRIVATE $<TARGET_OBJECTS:drun_${room}>)
    endforeach()
  endif()
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} drun_build_flags)
  drun_precompile(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  if(NOT DRUN_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-z,now -Wl,-O1
      -Wl,--as-needed) # each library that need not be loaded is time at every start
  endif()
  add_dependencies(programs ${name})
endfunction()

# drun_add_test(<name> LABEL unit|golden|integration|e2e|... [TIMEOUT s] [COST s] SOURCES ... DEPENDS ... [ENVIRONMENT k=v ...])
# Every TEST is a ctest case of its own, named LABEL.Suite.Name, so that one crash does not hide the others.
# COST: about how long the longest of them takes, if that is long. ctest starts those first, and the short ones fill the gaps.
function(drun_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT;COST" "SOURCES;DEPENDS;ENVIRONMENT")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} drun_test_places GTest::gmock_main drun_build_flags)
  target_precompile_headers(${name} REUSE_FROM drun_test_precompiled)
  if(NOT TARGET tests_${arg_LABEL})
    add_custom_target(tests_${arg_LABEL})
    add_dependencies(tests_${arg_LABEL} programs)
  endif()
  add_dependencies(tests_${arg_LABEL} ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  set(processors 1) # of which `scripts/test` counts four for each core
  if(arg_LABEL STREQUAL "torch") # to import torch keeps a core busy, but not all the time
    set(processors 2)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${arg_LABEL}." NO_PRETTY_VALUES # the tests name their cases themselves
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} COST ${arg_COST} PROCESSORS ${processors} ENVIRONMENT "${arg_ENVIRONMENT}" DISCOVERY_TIMEOUT 120)
endfunction()
