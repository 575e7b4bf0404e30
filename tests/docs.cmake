# The commands in README.md and docs/ are run.
add_test(NAME docs.commands COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/docs/run_commands.py"
  "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/bin")
set_tests_properties(docs.commands PROPERTIES LABELS docs TIMEOUT 600)
