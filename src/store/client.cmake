# The client half of drun::store.
set(DRUN_STORE_CLIENT_SOURCES
  client.cpp
  client_connection.cpp
  control_client.cpp
  control_machine.cpp
  dialer.cpp
  resolve.cpp
  socket.cpp
  tcpstore_call.cpp)
set(DRUN_STORE_CLIENT_HEADERS
  drun/store/client.hpp
  drun/store/control_client.hpp)
