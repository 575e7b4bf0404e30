drun_add_test(process_unit_test LABEL unit
  SOURCES unit/cgroup_test.cpp unit/exec_candidates_test.cpp unit/exit_status_test.cpp unit/kill_limit_test.cpp unit/process_wire_test.cpp
  DEPENDS drun::process)
drun_add_test(process_test LABEL integration
  SOURCES integration/descendants_test.cpp integration/guardian_test.cpp integration/spawn_test.cpp integration/stop_test.cpp DEPENDS drun::process)

add_executable(survivor support/survivor.cpp)
target_link_libraries(survivor PRIVATE drun::options)
set_target_properties(survivor PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
drun_add_test(survivor_test LABEL integration TIMEOUT 900 SOURCES integration/survivor_test.cpp
  DEPENDS drun::process)
target_compile_definitions(survivor_test PRIVATE DRUN_SURVIVOR="$<TARGET_FILE:survivor>")
add_dependencies(survivor_test survivor)
if(TARGET drun)
  drun_add_test(survivor_drun_test LABEL e2e TIMEOUT 900 SOURCES e2e/survivor_drun_test.cpp DEPENDS drun::process)
  target_compile_definitions(survivor_drun_test PRIVATE DRUN_SURVIVOR="$<TARGET_FILE:survivor>")
  add_dependencies(survivor_drun_test survivor drun)
endif()

# Measurements, not tests: see docs/process.md and docs/performance.md.
add_executable(spawn_bench bench/processes.cpp bench/spawn_bench.cpp)
target_include_directories(spawn_bench PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(spawn_bench PRIVATE drun::process drun::options)
