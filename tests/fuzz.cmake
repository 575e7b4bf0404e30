# Fuzz targets: with the preset `fuzz` (Clang, libFuzzer) they search; with every other they only run
# the inputs that they are given: the recorded connections, and what once broke something.
option(DRUN_FUZZ "Build the fuzz targets with libFuzzer" OFF)
set(fuzz "${CMAKE_CURRENT_SOURCE_DIR}/fuzz")
set(fuzz_seeds "${CMAKE_CURRENT_BINARY_DIR}/fuzz_seeds")

add_custom_command(OUTPUT "${fuzz_seeds}/.complete"
  COMMAND Python3::Interpreter "${fuzz}/make_seeds.py" "${CMAKE_CURRENT_SOURCE_DIR}/golden/tcpstore" "${fuzz_seeds}"
  DEPENDS fuzz/make_seeds.py golden/tcpstore/torch-1.13.1.jsonl golden/tcpstore/torch-2.14.1.jsonl
  VERBATIM)
add_custom_target(fuzz_seeds ALL DEPENDS "${fuzz_seeds}/.complete")
add_custom_target(fuzzers DEPENDS fuzz_seeds)
if(NOT TARGET tests_property)
  add_custom_target(tests_property)
endif()

# What the targets are about, without clients and sockets; elsewhere the library has it.
if(DRUN_FUZZ)
  add_library(fuzzed_store STATIC)
  foreach(source control_protocol control_requests errors key_hash peer sessions snapshot table
                 table_watches tcpstore_call tcpstore_protocol tcpstore_requests)
    target_sources(fuzzed_store PRIVATE "${PROJECT_SOURCE_DIR}/src/store/${source}.cpp")
  endforeach()
  set_target_properties(fuzzed_store PROPERTIES UNITY_BUILD ON)
  target_link_libraries(fuzzed_store PUBLIC drun::base PRIVATE drun::options)
else()
  add_library(fuzzed_store ALIAS drun_store)
endif()

# drun_add_fuzzer(<name> SOURCES ...): the target <name>_fuzz and the ctest case fuzz.<name>
function(drun_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
  set(target ${name}_fuzz)
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE fuzzed_store drun::options)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(DRUN_FUZZ)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${target} PRIVATE fuzz/run_inputs.cpp)
    add_test(NAME property.Fuzz.${name} COMMAND ${target} --random 2000 1 "${fuzz_seeds}/${name}" "${fuzz}/corpus/${name}")
    set_tests_properties(property.Fuzz.${name} PROPERTIES LABELS property TIMEOUT 600)
  endif()
  add_dependencies(${target} fuzz_seeds)
  add_dependencies(fuzzers ${target})
  add_dependencies(tests_property ${target})
endfunction()

drun_add_fuzzer(codec SOURCES fuzz/codec_fuzz.cpp)
drun_add_fuzzer(session SOURCES fuzz/control_stream.cpp fuzz/requests.cpp fuzz/session_fuzz.cpp)
drun_add_fuzzer(model SOURCES fuzz/model_fuzz.cpp fuzz/requests.cpp support/store_model.cpp)
drun_add_fuzzer(snapshot SOURCES fuzz/snapshot_fuzz.cpp)
