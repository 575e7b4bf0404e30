drun_add_test(agent_unit_test LABEL unit DEPENDS drun::agent Asio::Asio
  SOURCES unit/agent_settings_test.cpp unit/master_port_test.cpp unit/port_holder_test.cpp unit/private_key_value_test.cpp support/fake_store.cpp unit/progress_test.cpp unit/said_once_test.cpp unit/stop_requests_test.cpp unit/time_limits_test.cpp)

# Real agents, real faults. The seeds are fixed; chaos.py takes any other by hand.
foreach(seed 1 2)
  add_test(NAME chaos.seed_${seed}
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/chaos/chaos.py
            --bin ${PROJECT_BINARY_DIR}/bin --seed ${seed} --faults 12)
  set_tests_properties(chaos.seed_${seed} PROPERTIES LABELS chaos TIMEOUT 900 RUN_SERIAL ON)
endforeach()
add_test(NAME chaos.netns
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/chaos/chaos.py
          --bin ${PROJECT_BINARY_DIR}/bin --seed 3 --faults 12 --netns)
set_tests_properties(chaos.netns PROPERTIES LABELS chaos TIMEOUT 900 RUN_SERIAL ON SKIP_RETURN_CODE 77)
foreach(name addresses silent_host)
  add_test(NAME netns.${name}
    COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/netns/${name}.py --bin ${PROJECT_BINARY_DIR}/bin)
  set_tests_properties(netns.${name} PROPERTIES LABELS netns TIMEOUT 900 SKIP_RETURN_CODE 77)
endforeach()

# Prints a table; see docs/performance.md.
add_executable(rendezvous_bench bench/rendezvous_bench.cpp)
target_compile_definitions(rendezvous_bench PRIVATE DRUN_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
target_link_libraries(rendezvous_bench PRIVATE drun::store_key_value drun::rendezvous drun::options Asio::Asio)
add_dependencies(rendezvous_bench drun-store)

add_executable(fork_loop bench/fork_loop.cpp)
target_link_libraries(fork_loop PRIVATE drun::options)
target_link_options(fork_loop PRIVATE -Wl,--as-needed) # a plain C program: no C++ library
set_target_properties(fork_loop PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
add_executable(launch_bench bench/launch_bench.cpp bench/processes.cpp bench/restart_probe.cpp)
target_include_directories(launch_bench PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(launch_bench PRIVATE DRUN_BIN_DIR="${PROJECT_BINARY_DIR}/bin" DRUN_BENCH_LOOP="$<TARGET_FILE:fork_loop>")
target_link_libraries(launch_bench PRIVATE drun::base drun::options)
add_dependencies(launch_bench drun fork_loop)
add_dependencies(tests_integration launch_bench)
foreach(mode launch restart)
  set(flags --runs 1 --torchrun-runs 0 --counts 2)
  if(mode STREQUAL restart)
    list(APPEND flags --restart)
  endif()
  add_test(NAME integration.LaunchBench.${mode} COMMAND launch_bench ${flags})
  set_tests_properties(integration.LaunchBench.${mode} PROPERTIES LABELS integration TIMEOUT 300)
endforeach()
