#include "launcher/hosts/own_words.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/environment_variable.hpp"

namespace drun::launcher::hosts {
namespace {

// A begin without an end for longer is none.
constexpr std::size_t kLongestWords = 1024 * 1024;

}  // namespace

WordMarks word_marks(std::string_view secret) {
  using namespace std::string_literals;
  return {"\0drun says "s + std::string(secret) + "\0"s, "\0\n"s};
}

WordMarks take_word_marks(std::vector<std::string>& environment) {
  const auto secret = environment_variable(environment, kWordsVariable);
  if (!secret) return {};
  erase_variable(environment, kWordsVariable);
  return secret->empty() ? WordMarks() : word_marks(*secret);
}

std::string marked(const WordMarks& marks, std::string_view text) {
  return marks.begin + std::string(text) + marks.end;
}

std::vector<WordsReader::Piece> WordsReader::take(std::string_view bytes) {
  if (marks_.begin.empty()) return {{false, std::string(bytes)}};
  bytes_ += bytes;
  std::vector<Piece> pieces;
  const auto pass = [&](bool own, std::size_t size, std::size_t with_mark) {
    if (size > 0) pieces.push_back({own, bytes_.substr(0, size)});
    bytes_.erase(0, with_mark);
  };
  while (!bytes_.empty()) {
    const std::string& mark = inside_ ? marks_.end : marks_.begin;
    const auto found = bytes_.find(mark);
    if (found != std::string::npos) {
      pass(inside_, found, found + mark.size());
      inside_ = !inside_;
    } else if (!inside_) {
      const std::size_t known = possible_begin();
      pass(false, known, known);
      break;
    } else if (bytes_.size() > kLongestWords) {
      inside_ = false;
    } else {
      break;
    }
  }
  return pieces;
}

// The end may be the beginning of a mark.
std::size_t WordsReader::possible_begin() const {
  const std::string_view bytes = bytes_;
  std::size_t at = bytes.size() - std::min(bytes.size(), marks_.begin.size() - 1);
  while (!marks_.begin.starts_with(bytes.substr(at)))
    ++at;
  return at;
}

std::vector<WordsReader::Piece> WordsReader::rest() {
  if (bytes_.empty()) return {};
  return {{false, std::exchange(bytes_, {})}};
}

bool SaidWords::is_news(std::uint32_t host, std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>()(text);
  const auto [place, fresh] = texts_.try_emplace(hash);
  Said& said = place->second;
  if (fresh) order_.push_back(hash);
  const bool news = ++said.by_host[host] > said.times;
  if (news) ++said.times;
  if (order_.size() > most_) {
    texts_.erase(order_.front());
    order_.pop_front();
  }
  return news;
}

}  // namespace drun::launcher::hosts
