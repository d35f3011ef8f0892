#include "base/version.h"

#include <fmt/core.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>

#include "base/build_info.h"

namespace sluice {

const Version& version() {
    static const Version kVersion{.version = build_info::kVersion,
                                  .commit = build_info::kCommit,
#ifdef __clang__
                                  .compiler = "Clang " __clang_version__,
#else
                                  .compiler = "GCC " __VERSION__,
#endif
                                  .flags = build_info::kFlags};
    return kVersion;
}

std::string version_text(const Arithmetic& arithmetic) {
    const Version& v = version();
    std::string targets;
    for (const std::string& target : arithmetic.targets) targets += " " + target;
    return fmt::format(
        "sluice {}\ncommit      {}\ncompiler    {}\nflags       {}\narithmetic  {}\n"
        "targets    {}\n",
        v.version, v.commit, v.compiler, v.flags, arithmetic.version,
        targets.empty() ? " -" : targets);
}

std::string version_json(const Arithmetic& arithmetic) {
    const Version& v = version();
    return boost::json::serialize(boost::json::object{
        {"version", v.version},
        {"commit", v.commit},
        {"compiler", v.compiler},
        {"flags", v.flags},
        {"arithmetic", arithmetic.version},
        {"targets", boost::json::value_from(arithmetic.targets)},
    });
}

}  // namespace sluice
