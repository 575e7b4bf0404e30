drun_add_test(command_line_test LABEL unit SOURCES unit/options_test.cpp DEPENDS drun::command_line drun::process)
