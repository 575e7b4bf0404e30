drun_add_test(output_unit_test LABEL unit SOURCES unit/output_text_test.cpp unit/output_turns_test.cpp
  DEPENDS drun::output)
drun_add_test(output_test LABEL integration SOURCES integration/output_test.cpp DEPENDS drun::output)
