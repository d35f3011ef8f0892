// What may be started without a key, by the real program.

#include <gmock/gmock.h>

#include "app/command.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;

TEST(ExposureTest, AServiceThatOthersReachIsNotStartedWithoutAKey) {
    const TemporaryFolder state;
    const TemporaryFile everywhere("[gateway]\nlisten = \"0.0.0.0:0\"\nadmin = \"127.0.0.1:0\"\n");
    const TemporaryFile admin("[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"0.0.0.0:0\"\n");
    const std::vector<std::string> up = {"up", "--state", state.path(), "--config"};
    const std::vector<std::string> gateway = {"gateway", "--worker", "http://127.0.0.1:1",
                                              "--config"};
    for (const TemporaryFile* file : {&everywhere, &admin}) {
        for (std::vector<std::string> words : {up, gateway}) {
            words.push_back(file->path());
            const Outcome refused = run_sluice(words);
            EXPECT_EQ(refused.code, kCannotStart) << words[0];
            EXPECT_THAT(refused.err, HasSubstr("sluice ctl keys add"));
        }
    }
}

TEST(ExposureTest, ACertificateThatIsNotThereKeepsAGatewayFromStarting) {
    const TemporaryFile config(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n"
        "tls_certificate = \"/none.pem\"\ntls_key = \"/none.key\"\n");
    const Outcome refused =
        run_sluice({"gateway", "--worker", "http://127.0.0.1:1", "--config", config.path()});
    EXPECT_EQ(refused.code, kCannotStart);
    EXPECT_THAT(refused.err, HasSubstr("/none.pem"));
}

}  // namespace
}  // namespace sluice::app
