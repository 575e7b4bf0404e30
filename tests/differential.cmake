# The same jobs under real torchruns and under drun: see docs/testing.md.
set(differential "${CMAKE_CURRENT_SOURCE_DIR}/differential")
set(differential_bin "${PROJECT_BINARY_DIR}/bin")

# What torchrun 2.14 did is recorded; the others need PyTorch, and are skipped without.
foreach(release recorded host trixie forky)
  add_test(NAME differential.jobs.${release}
    COMMAND Python3::Interpreter "${differential}/differential.py" "${differential_bin}" --release ${release})
  set_tests_properties(differential.jobs.${release} PROPERTIES
    LABELS differential SKIP_RETURN_CODE 77 TIMEOUT 1800 PROCESSORS 2)
endforeach()
add_test(NAME differential.flags
  COMMAND Python3::Interpreter "${differential}/check_flags.py" "${differential_bin}")
add_test(NAME differential.command_lines
  COMMAND Python3::Interpreter "${differential}/check_command_lines.py" "${differential_bin}"
          "${CMAKE_CURRENT_BINARY_DIR}/fake_nvml")
set_tests_properties(differential.flags differential.command_lines PROPERTIES LABELS differential TIMEOUT 900)
