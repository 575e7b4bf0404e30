// drunctl doctor, alone and as the program of a job.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

Finished doctor_in(const TempDir& folder, const Arguments& arguments) {
  Launch launch;
  launch.argv = Arguments{places::program("drunctl")} + arguments;
  launch.directory = folder.path();
  return DrunProcess(launch).finish();
}

TEST(DoctorDrunTest, OneMachineIsCheckedAndCounted) {
  const TempDir folder;
  const Finished text = doctor_in(folder, {"doctor"});
  EXPECT_THAT(text.out, HasSubstr("/dev/shm"));
  EXPECT_THAT(text.out, HasSubstr(" pass, "));
  EXPECT_THAT(text.out, Not(HasSubstr("program")));
  const Finished json = doctor_in(folder, {"doctor", "--json"});
  const Json report = Json::parse(json.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << json.out;
  EXPECT_EQ(report["verdict"] == "fail", json.code == 1);
  EXPECT_GT(report["checks"].size(), 5U);
}

// Of one check in the answer: "pass", "warn", "fail".
std::string program_verdict(const Finished& finished) {
  const Json report = Json::parse(finished.out, nullptr, false);
  if (!report.is_object()) return finished.err;
  for (const Json& check : report["checks"])
    if (check["check"] == "program") return check["verdict"];
  return "not checked";
}

TEST(DoctorDrunTest, AProgramIsJudgedAsDrunWould) {
  const TempDir folder;
  (void)folder.write("train.py", "print('hi')\n");
  (void)folder.write("train.sh", "#!/bin/sh\n");
  (void)folder.write("run.sh", "#!/bin/sh\n", true);
  const auto verdict = [&](const Arguments& program) {
    return program_verdict(doctor_in(folder, Arguments{"doctor", "--json", "--"} + program));
  };
  EXPECT_EQ(verdict({"./train.py"}), "pass") << "Python runs it, executable or not";
  EXPECT_EQ(verdict({"./run.sh", "--lr", "1"}), "pass");
  EXPECT_EQ(verdict({"./train.sh"}), "fail");
  EXPECT_EQ(verdict({"./nope.py"}), "fail");
  EXPECT_EQ(verdict({"nope-no-such-program"}), "fail");
  EXPECT_EQ(verdict({"python3", "nope.py"}), "fail");
  EXPECT_EQ(verdict({"python3", "train.py"}), "pass");
  EXPECT_EQ(verdict({"python3", "-c", "pass"}), "pass");
  EXPECT_EQ(doctor_in(folder, {"doctor", "./nope"}).code, 1);
}

// The verdicts on the GPUs of a made-up driver, in order.
std::vector<std::string> gpu_verdicts(const Arguments& environment) {
  Launch launch;
  launch.argv = {places::program("drunctl"), "doctor", "--json"};
  launch.environment = Arguments{"LD_LIBRARY_PATH=" FAKE_NVML_FOLDER} + environment;
  const Json report = Json::parse(DrunProcess(launch).finish().out, nullptr, false);
  std::vector<std::string> verdicts;
  if (!report.is_object()) return verdicts;
  for (const Json& check : report["checks"])
    if (check["check"].get<std::string>().starts_with("GPU ")) verdicts.push_back(check["verdict"]);
  return verdicts;
}

TEST(DoctorDrunTest, TheDriverTellsOfSickGpus) {
  const std::string two = "FAKE_NVML=GPU-a@0:1:0 GPU-b@0:2:0";
  EXPECT_THAT(gpu_verdicts({two}), testing::ElementsAre("pass", "pass"));
  EXPECT_THAT(gpu_verdicts({"FAKE_NVML=GPU-a@0:1:0 lost@0:2:0"}),
              testing::ElementsAre("pass", "fail"));
  EXPECT_THAT(gpu_verdicts({two, "FAKE_NVML_ECC=3"}), testing::ElementsAre("fail", "fail"));
  EXPECT_THAT(gpu_verdicts({two, "FAKE_NVML_PENDING=1"}), testing::ElementsAre("fail", "fail"));
}

TEST(DoctorDrunTest, FlagsOfTheProgramNeedTwoDashes) {
  const TempDir folder;
  const Finished finished = doctor_in(folder, {"doctor", "./train.py", "--lr", "1"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("stand behind --"));
}

TEST(DoctorDrunTest, AsTheProgramOfAJobItChecksAllNodesOnce) {
  const Finished finished = run_drun(
      {"--local-nodes", "3", "--nproc-per-node", "2", places::program("drunctl"), "doctor"});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("these 3 nodes are one machine"));
  EXPECT_THAT(finished.out, HasSubstr("all of 6 ways are open"));
  EXPECT_THAT(finished.out, HasSubstr("the nodes do not differ"));
  EXPECT_THAT(finished.out, HasSubstr("pass  clocks "));
  EXPECT_THAT(finished.out, Not(HasSubstr("MTU ")));
  const auto first = finished.out.find(" pass, ");
  EXPECT_EQ(finished.out.find(" pass, ", first + 1), std::string::npos) << finished.out;
}

TEST(DoctorDrunTest, ItNeedsDrunsStore) {
  const Finished finished = run_drun(
      {"--local-nodes", "2", "--worker-store", "rank0", places::program("drunctl"), "doctor"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("use --worker-store agent"));
}

}  // namespace
}  // namespace drun::test
