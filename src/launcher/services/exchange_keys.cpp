#include "launcher/services/exchange_keys.hpp"

namespace drun::launcher {

std::string ExchangeKeys::of(int number, int rank) const {
  return "drun/" + kind + "/" + std::to_string(number) + "/" + std::to_string(rank);
}

std::vector<std::string> ExchangeKeys::all(int number) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < nodes; ++rank)
    keys.push_back(of(number, rank));
  return keys;
}

std::optional<std::string> ExchangeKeys::done_with(int number) const {
  return number > 0 ? std::optional(own(number - 1)) : std::nullopt;
}

}  // namespace drun::launcher
