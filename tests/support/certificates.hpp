// An authority of a test's own, and one certificate that it has signed: for 127.0.0.1, good for
// both ends of a connection. Made by the program openssl.
#pragma once

#include <cstdlib>
#include <string>

#include "support/drun_process.hpp"

namespace drun::test {

class Certificates {
 public:
  Certificates() {
    made_ = run("req -x509 " + std::string(kFresh) +
                "-keyout ca.key -out ca.pem -days 30 -subj /CN=authority") &&
            issue("own", kBothUses) &&
            run("pkey -in own.key -aes256 -passout pass:secret -out locked.key");
  }

  static constexpr const char* kBothUses = "extendedKeyUsage=serverAuth,clientAuth\n";

  // NAME.pem and NAME.key: one more certificate, signed by another one with its key.
  [[nodiscard]] bool issue(const std::string& name, const std::string& extensions, int days = 30,
                           const std::string& by = "ca") const {
    const std::string config = folder_.write("names", "subjectAltName=IP:127.0.0.1\n" + extensions);
    return run("req " + std::string(kFresh) + "-keyout " + name + ".key -out " + name +
               ".csr -subj /CN=" + name) &&
           run("x509 -req -in " + name + ".csr -CA " + by + ".pem -CAkey " + by +
               ".key -CAcreateserial -days " + std::to_string(days) + " -out " + name +
               ".pem -extfile '" + config + "'");
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.path() / name; }
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }

  // False: the machine has no openssl.
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] std::string authority() const { return folder_.path() / "ca.pem"; }
  [[nodiscard]] std::string certificate() const { return folder_.path() / "own.pem"; }
  [[nodiscard]] std::string key() const { return folder_.path() / "own.key"; }
  // The same behind a pass phrase.
  [[nodiscard]] std::string locked_key() const { return folder_.path() / "locked.key"; }

 private:
  static constexpr const char* kFresh = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";

  [[nodiscard]] bool run(const std::string& words) const {
    const std::string line =
        "cd '" + folder_.path().string() + "' && openssl " + words + " </dev/null >/dev/null 2>&1";
    return std::system(line.c_str()) == 0;
  }

  TempDir folder_;
  bool made_ = false;
};

}  // namespace drun::test
