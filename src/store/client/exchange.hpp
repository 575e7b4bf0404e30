// The all-gathers of one client, one after the other, made of the calls that every TCPStore server
// has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

namespace drun::store {

class ExchangeSeries {
 public:
  // As Client::exchange().
  Result<std::vector<std::string>> next(Client& client, int rank, int size, std::string_view value,
                                        Client::Deadline deadline);

 private:
  std::int64_t finished_ = 0;  // exchanges; the next one has this number
};

}  // namespace drun::store
