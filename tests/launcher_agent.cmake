drun_add_test(agent_unit_test LABEL unit SOURCES unit/progress_test.cpp unit/master_port_test.cpp DEPENDS drun::agent)
