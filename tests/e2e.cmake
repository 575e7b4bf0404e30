# Tests of the whole program: the real drun, started as a user starts it.
add_library(drun_test_support STATIC support/drun_process.cpp)
target_include_directories(drun_test_support PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(drun_test_support PRIVATE DRUN_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
target_link_libraries(drun_test_support PUBLIC drun::base PRIVATE drun::options)

drun_add_test(support_test LABEL integration SOURCES integration/drun_process_test.cpp DEPENDS drun_test_support)
