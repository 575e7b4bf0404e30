# The programs over the store.
drun_add_program(drun-store SOURCES main.cpp arguments.cpp DEPENDS drun::store)
target_compile_definitions(drun-store PRIVATE DRUN_VERSION="${PROJECT_VERSION}")
