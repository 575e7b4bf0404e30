# Tests of the whole program: the real drun, started as a user starts it.
add_library(drun_test_support STATIC support/drun_process.cpp)
target_include_directories(drun_test_support PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(drun_test_support PRIVATE DRUN_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
target_link_libraries(drun_test_support PUBLIC drun::base PRIVATE drun::options)

drun_add_test(support_test LABEL integration TIMEOUT 120 SOURCES integration/drun_process_test.cpp DEPENDS drun_test_support)

drun_add_program(store_worker SOURCES e2e/store_worker.cpp DEPENDS drun::store)
drun_add_test(e2e_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support
  SOURCES e2e/bad_input_test.cpp e2e/examples_test.cpp e2e/job_test.cpp)
drun_add_test(output_drun_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support
  SOURCES e2e/local_nodes_test.cpp e2e/output_lines_test.cpp e2e/output_streams_test.cpp)
drun_add_test(failure_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support SOURCES e2e/failure_test.cpp)
drun_add_test(spawning_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support SOURCES e2e/spawning_test.cpp)
drun_add_test(signals_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support
  SOURCES e2e/job_control_test.cpp e2e/signals_test.cpp)
drun_add_test(terminal_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support SOURCES e2e/terminal_test.cpp)
drun_add_test(elastic_test LABEL e2e TIMEOUT 600 DEPENDS drun_test_support drun::store
  SOURCES e2e/elastic_test.cpp e2e/refusal_test.cpp e2e/shared_store_test.cpp support/scripted_peer.cpp)
# Real PyTorch, where it is installed; an import takes seconds.
drun_add_test(torch_test LABEL torch TIMEOUT 600 SOURCES torch/examples_test.cpp torch/newer_test.cpp torch/store_calls_test.cpp DEPENDS drun_test_support)
add_dependencies(torch_test drun-store)
add_dependencies(tests_e2e drun_fake_nvml) # for e2e.devices
