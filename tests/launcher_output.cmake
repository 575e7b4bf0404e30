drun_add_test(output_unit_test LABEL unit SOURCES unit/core_file_test.cpp unit/error_file_test.cpp
  unit/failure_report_test.cpp unit/output_files_test.cpp unit/output_fold_test.cpp unit/output_lines_test.cpp
  unit/output_delivery_test.cpp unit/output_route_test.cpp unit/output_text_test.cpp unit/output_turns_test.cpp DEPENDS drun::output)
drun_add_test(failure_report_golden_test LABEL golden SOURCES golden/failure_report_test.cpp
  DEPENDS drun::output nlohmann_json::nlohmann_json)
drun_add_test(output_test LABEL integration SOURCES integration/output_modes_test.cpp integration/output_relay_test.cpp
  integration/output_terminal_test.cpp integration/output_test.cpp DEPENDS drun::output)
