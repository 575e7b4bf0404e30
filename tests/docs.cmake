# The commands in README.md, docs/ and examples/ are run.
add_test(NAME docs.commands COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/docs/run_commands.py"
  "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/bin")
set_tests_properties(docs.commands PROPERTIES LABELS docs TIMEOUT 1200)
add_test(NAME docs.manuals COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/docs/check_manuals.py"
  "${PROJECT_BINARY_DIR}/bin")
set_tests_properties(docs.manuals PROPERTIES LABELS docs TIMEOUT 300)
