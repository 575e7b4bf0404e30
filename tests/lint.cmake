# Rules of the source tree. `ctest -L lint` runs them alone.
set(lint "${CMAKE_CURRENT_SOURCE_DIR}/lint")
add_test(NAME lint.source COMMAND Python3::Interpreter "${lint}/check_source.py" "${PROJECT_SOURCE_DIR}")
add_test(NAME lint.source_rules COMMAND Python3::Interpreter "${lint}/check_source_test.py")
add_test(NAME lint.format COMMAND "${lint}/check_format.sh" "${PROJECT_SOURCE_DIR}")
add_test(NAME lint.scripts COMMAND "${lint}/check_scripts.sh" "${PROJECT_SOURCE_DIR}")
set_tests_properties(lint.source lint.source_rules lint.format lint.scripts PROPERTIES
  LABELS lint SKIP_RETURN_CODE 77 TIMEOUT 600)
