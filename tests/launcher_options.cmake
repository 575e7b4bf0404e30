drun_add_test(command_line_test LABEL unit
  SOURCES unit/addresses_test.cpp unit/dry_run_test.cpp unit/environment_test.cpp
          unit/options_command_test.cpp unit/options_help_test.cpp unit/options_rendezvous_test.cpp
          unit/options_scan_test.cpp unit/options_test.cpp unit/options_values_test.cpp
  DEPENDS drun::command_line)
drun_add_test(runnable_test LABEL integration SOURCES integration/runnable_test.cpp DEPENDS drun::command_line drun_test_support)
drun_add_test(completion_test LABEL integration TIMEOUT 600 SOURCES integration/completion_test.cpp DEPENDS drun::command_line)
