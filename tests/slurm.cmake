# A real Slurm on this machine; see docs/testing.md.
add_test(NAME slurm.documented_job
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/slurm/slurm.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/bin)
set_tests_properties(slurm.documented_job PROPERTIES LABELS slurm TIMEOUT 1200 SKIP_RETURN_CODE 77)
