drun_add_test(process_unit_test LABEL unit SOURCES unit/exit_status_test.cpp DEPENDS drun::process)
drun_add_test(process_test LABEL integration SOURCES integration/guardian_test.cpp DEPENDS drun::process)
