#include "base/folder_names.hpp"

#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file_tree.hpp"

namespace drun {
namespace {

TEST(FolderNamesTest, AreAllThatTheFolderHas) {
  test::FileTree files;
  files.write("/a", "");
  files.write("/folder/b", "");
  std::set<std::string> names;
  EXPECT_TRUE(for_each_name(files.root(), [&](std::string_view name) { names.emplace(name); }));
  EXPECT_THAT(names, testing::ElementsAre(".", "..", "a", "folder"));
  const auto visit = [](std::string_view name) { ADD_FAILURE() << name; };
  EXPECT_FALSE(for_each_name(files.root() + "/gone", visit));
  EXPECT_FALSE(for_each_name(files.root() + "/a", visit));
}

}  // namespace
}  // namespace drun
