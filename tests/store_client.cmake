# The store's clients and programs.
drun_add_test(store_client_unit_test LABEL unit
  SOURCES unit/client_machine_test.cpp unit/control_machine_test.cpp unit/tcpstore_call_test.cpp
  DEPENDS drun::store)
drun_add_test(store_client_test LABEL integration
  SOURCES
    integration/async_client_test.cpp
    integration/self_connection_test.cpp
    integration/store_client_test.cpp
    support/scripted_peer.cpp
    support/store_thread.cpp
  DEPENDS drun::store drun_test_support Asio::Asio)
drun_add_test(store_torch_test LABEL torch TIMEOUT 900
  SOURCES torch/store_clients_test.cpp DEPENDS drun::store drun_test_support Asio::Asio)

# The load generator; the test only sees that it works.
add_executable(store_bench bench/limit_server.cpp bench/load.cpp bench/server_process.cpp bench/store_bench.cpp)
target_include_directories(store_bench PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(store_bench PRIVATE DRUN_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
target_link_libraries(store_bench PRIVATE drun::store drun::options)
add_dependencies(tests_integration store_bench)
add_test(NAME integration.StoreBench.Runs COMMAND store_bench
  --servers limit,copy,drun --seconds 0.05 --connections 4 --storms 20 --repeat 1)
set_tests_properties(integration.StoreBench.Runs PROPERTIES LABELS integration TIMEOUT 300)

drun_add_test(store_key_value_test LABEL integration
  SOURCES integration/store_key_value_test.cpp support/scripted_peer.cpp support/store_thread.cpp
  DEPENDS drun::store_key_value drun_test_support Asio::Asio)

# The programs.
drun_add_test(drunctl_test LABEL integration TIMEOUT 900
  SOURCES integration/drunctl_test.cpp support/store_thread.cpp DEPENDS drun::store drun_test_support)
drun_add_test(drun_store_test LABEL integration TIMEOUT 900
  SOURCES integration/drun_store_test.cpp DEPENDS drun::store drun_test_support)
add_dependencies(drunctl_test drunctl)
add_dependencies(store_torch_test drunctl)
add_dependencies(drun_store_test drun-store)
add_dependencies(store_bench drun-store)
