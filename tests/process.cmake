drun_add_test(process_unit_test LABEL unit SOURCES unit/exit_status_test.cpp DEPENDS drun::process)
drun_add_test(process_test LABEL integration SOURCES integration/guardian_test.cpp DEPENDS drun::process)

add_executable(spawn_bench bench/spawn_bench.cpp) # a measurement, not a test: see docs/process.md
target_link_libraries(spawn_bench PRIVATE drun::process drun::options)
