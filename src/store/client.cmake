# The client half of drun::store, and the programs.
list(APPEND DRUN_STORE_CLIENT_SOURCES client.cpp client_connection.cpp resolve.cpp socket.cpp tcpstore_call.cpp)
list(APPEND DRUN_STORE_CLIENT_HEADERS drun/store/client.hpp)
